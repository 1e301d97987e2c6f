import { readFileSync } from 'node:fs';
import { processesIn, send } from './server-process';

const lookMs = 500;
/** What PostgreSQL says of itself in its title (src/backend/utils/misc/ps_status.c): role, database, client, activity. Customers come by TCP only. */
const oursWaits = /^postgres: holdfast_admin .* waiting\s*$/;
const customers = /^postgres: .* 127\.0\.0\.1\(\d+\) /;

/**
 * Runs what our own sessions do in the server of `data`. A customer may lock what they need, even the catalogue of roles (pg_maintain allows it), and would
 * so escape restriction, rotation and deletion: when one of ours has waited for a lock for half a second, that service's sessions are ended. They are found
 * and told by the operating system: the server itself could not be asked.
 */
export async function pastCustomers<T>(data: string, work: () => Promise<T>): Promise<T> {
  let waited = false;
  const watch = setInterval(() => {
    const sessions = titlesIn(data);
    const waits = sessions.some(({ title }) => oursWaits.test(title));
    if (waits && waited) for (const { pid, title } of sessions) if (customers.test(title)) send(pid, 'SIGTERM');
    waited = waits;
  }, lookMs);
  try {
    return await work();
  } finally {
    clearInterval(watch);
  }
}

function titlesIn(data: string): { pid: number; title: string }[] {
  return processesIn(data).map((pid) => ({ pid, title: titleOf(pid) }));
}

function titleOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // it has ended meanwhile
  }
}
