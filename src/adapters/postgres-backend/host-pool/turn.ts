import type pg from 'pg';
import { AppError } from '../../../core/errors';
import type { Ref } from '../../../postgres/ports';
import type { AccessMode } from '../../../postgres/rules';
import { asAdmin, type PoolServer } from './server';

export type Held = { state: 'absent' | 'placed' | 'made' | 'retained'; bytes: number | null; mode: AccessMode; stopped: boolean; logins: string[] };

/** A call for one service while no other works on it: the administrator's session, and what the server's own record says. */
export type Turn = {
  client: pg.Client;
  held: Held;
  /** Long work asks between its steps. Errors: `stale_generation`. */
  requireFence(): Promise<void>;
  save(change: Partial<Held>): Promise<void>;
};

/**
 * Works on a service in turn, over every worker there is: the fence is raised at once, then a session's advisory lock is waited for, then the fence is asked
 * again, because a newer call may have raised it meanwhile (contract postgres.md §5.1, §6.3). Errors: `stale_generation`, `backend_error`.
 */
export function inTurn<T>(server: PoolServer, { serviceId, generation }: Ref, work: (turn: Turn) => Promise<T>): Promise<T> {
  return asAdmin(server, async (client) => {
    await raiseFence(client, serviceId, generation);
    await client.query('select pg_advisory_lock(hashtextextended($1, 0))', [serviceId]);
    const requireFence = () => raiseFence(client, serviceId, generation);
    await requireFence();
    const turn: Turn = { client, held: await readHeld(client, serviceId), requireFence, save: (change) => save(turn, serviceId, change) };
    return work(turn);
  });
}

async function raiseFence(client: pg.Client, serviceId: string, generation: number): Promise<void> {
  const { rows: [row] } = await client.query<{ generation: number }>(`insert into public.service as s (id, generation) values ($1, $2)
    on conflict (id) do update set generation = greatest(s.generation, excluded.generation) returning generation`, [serviceId, generation]);
  if (!row || row.generation > generation) throw new AppError('stale_generation', 'A newer decision about this service has been made.');
}

/** What the record says of a service; nothing, for one this server never heard of. */
export async function readHeld(client: pg.Client, serviceId: string): Promise<Held> {
  const { rows: [row] } = await client.query<Held>('select state, bytes::float8 as bytes, mode, stopped, logins from public.service where id = $1', [serviceId]);
  return row ?? { state: 'absent', bytes: null, mode: 'full', stopped: false, logins: [] };
}

async function save(turn: Turn, serviceId: string, change: Partial<Held>): Promise<void> {
  Object.assign(turn.held, change);
  const { state, bytes, mode, stopped, logins } = turn.held;
  await turn.client.query('update public.service set state = $2, bytes = $3, mode = $4, stopped = $5, logins = $6 where id = $1', [serviceId, state, bytes, mode, stopped, logins]);
}
