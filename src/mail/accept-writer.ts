import { databaseError } from '../db/errors';
import type { Database } from '../db/client';
import { afterCommit, inTransaction } from '../db/transaction';
import { countAccepted, insertMessages, type Counted, type NewMessage } from './store/accept';

/** accepted: durable. repeated: its Idempotency-Key was used before. full: the service's period has no room for it. busy: another has the key. */
export type Acceptance = 'accepted' | 'repeated' | 'full' | 'busy';

/** Makes messages durable, many at a time. */
export interface AcceptWriter {
  /** Resolves after the commit. Errors: those of the database; then nothing was stored. */
  write(message: NewMessage): Promise<Acceptance>;
}

/** `quotaNear` hears of services that came near their ceiling or to it; must not throw. */
export type WriterDeps = { db: Pick<Database, 'pool'>; quotaNear: (serviceIds: readonly string[]) => void };

type Item = { message: NewMessage; bytes: number; settle: (outcome: Acceptance) => void; fail: (error: unknown) => void };

const groupMax = 64;
/** One large message does not wait for another to be sent to the database with it. */
const groupMaxBytes = 4 * 1024 * 1024;
const writersMax = 4;

/**
 * Sends that arrive while a write runs form the next group: under load one commit carries many, at rest each goes at once.
 * A group that fails, or of which a service has no room for all, is tried again item by item.
 */
export function createAcceptWriter(deps: WriterDeps): AcceptWriter {
  const waiting: Item[] = [];
  let writers = 0;
  const work = async () => {
    writers += 1;
    for (let group = takeGroup(waiting); group.length > 0; group = takeGroup(waiting)) await settleGroup(deps, group);
    writers -= 1;
  };
  return {
    write: (message) => new Promise((settle, fail) => {
      waiting.push({ message, bytes: message.sizeBytes, settle, fail });
      if (writers < writersMax) void work();
    }),
  };
}

function takeGroup(waiting: Item[]): Item[] {
  let bytes = 0;
  let count = 0;
  for (const item of waiting) {
    if (count >= groupMax || (count > 0 && bytes + item.bytes > groupMaxBytes)) break;
    bytes += item.bytes;
    count += 1;
  }
  return waiting.splice(0, count);
}

/** Never rejects: each item has its outcome. */
async function settleGroup(deps: WriterDeps, group: readonly Item[]): Promise<void> {
  try {
    const outcomes = await writeGroup(deps, group.map(({ message }) => message));
    if (outcomes) return group.forEach((item, index) => item.settle(outcomes[index] ?? 'accepted'));
  } catch (error) {
    if (group.length === 1) return group.forEach((item) => settleFailed(item, error));
  }
  if (group.length === 1) return group.forEach((item) => item.settle('full'));
  for (const item of group) await settleGroup(deps, [item]);
}

function settleFailed(item: Item, error: unknown): void {
  if (item.message.once && databaseError(error)?.sqlState === '55P03') item.settle('busy');
  else item.fail(error);
}

/** Thrown through the transaction so that nothing of it stays. */
class NoRoom extends Error {}

/** Null when a service has no room for all of its messages: nothing was stored. */
async function writeGroup({ db, quotaNear }: WriterDeps, messages: readonly NewMessage[]): Promise<Acceptance[] | null> {
  try {
    return await inTransaction(db, async (tx) => {
      if (messages.some(({ once }) => once !== null)) await tx.query({ text: `set local lock_timeout = '5s'` });
      const inserted = await insertMessages(tx, messages);
      const accepted = messages.filter(({ id }) => inserted.has(id));
      const { full, notable } = accepted.length > 0 ? await countAccepted(tx, countsOf(accepted)) : { full: false, notable: [] };
      if (full) throw new NoRoom();
      if (notable.length > 0) afterCommit(tx, () => quotaNear(notable));
      return messages.map(({ id }) => (inserted.has(id) ? 'accepted' : 'repeated'));
    });
  } catch (error) {
    if (error instanceof NoRoom) return null;
    throw error;
  }
}

function countsOf(messages: readonly NewMessage[]): Counted[] {
  const counts = new Map<string, { serviceId: string; recipients: number; charged: number }>();
  for (const { serviceId, mode, recipients } of messages) {
    const counted = counts.get(serviceId) ?? { serviceId, recipients: 0, charged: 0 };
    counted.recipients += recipients.length;
    if (mode === 'live') counted.charged += recipients.length;
    counts.set(serviceId, counted);
  }
  return [...counts.values()];
}
