import { pino } from 'pino';
import { createMetrics } from '../../src/core/metrics';
import { newId } from '../../src/core/ids';
import type { Database } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';
import { openOperation, type NewOperation, type OperationRow } from '../../src/operations/store';
import { openTemporal, type Temporal } from '../../src/temporal/connection';

export const silent = pino({ level: 'silent' });
export const testMetrics = () => createMetrics('test');

/** An accepted operation as a handler would leave it: its row, not started yet. */
export function acceptOperation(database: Database, more: Partial<NewOperation> = {}, start: { weight?: number; signal?: string } = {}): Promise<OperationRow> {
  const { resourceId = newId('pg') } = more;
  return inTransaction(database, (tx) => openOperation(tx, {
    orgId: newId('org'), projectId: newId('prj'), kind: 'postgres.provision', resourceId, summary: 'Provision Postgres "orders" (starter)', requestId: newId('req'),
    start: { workflow: 'provisionPostgres', workflowId: `postgres-provision/${resourceId}`, queue: 'postgres', payload: { serviceId: resourceId, generation: 1 }, ...start },
    ...more,
  }));
}

export function temporalOf(server: { address: string; namespace: string }): Temporal {
  return openTemporal({ address: server.address, namespace: server.namespace, identity: 'test' });
}

/** Resolves with the first value that is not null or false; jest's own time limit ends a wait in vain. */
export async function eventually<T>(look: () => Promise<T | null | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== null && found !== false) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
