import type { AccessMode, Limits } from '../../../postgres/rules';

export type ServerSettings = {
  port: number; socketDir: string; limits: Limits; mode: AccessMode;
  /** Where finished WAL goes; null: nowhere. */
  archiveDir: string | null;
  /** Present while a copy of another server's data catches up. */
  recovery: Recovery | null;
};

/** `target` null: to the end of what is staged; `consistent`: as soon as the copy is whole. */
export type Recovery = { stagedDir: string; target: 'consistent' | Date | null };

/** Connections of a server beyond its customer's: reserved_connections and superuser_reserved_connections. */
export const connectionsReserved = 5;

/** Settings a customer cannot change: allow_alter_system is off, and what is left to a role is called a default (contract postgres.md §6.1, §8). */
export function postgresqlConf({ port, socketDir, limits, mode, archiveDir, recovery }: ServerSettings): string {
  const settings: [string, string | number][] = [
    ['listen_addresses', "'127.0.0.1'"],
    ['port', port],
    ['unix_socket_directories', `'${socketDir}'`],
    ['unix_socket_permissions', '0700'],
    ['max_connections', limits.connections + connectionsReserved],
    ['reserved_connections', 3],
    ['superuser_reserved_connections', 2],
    ['shared_buffers', `${limits.sharedBuffersMb}MB`],
    ['work_mem', `${limits.workMemMb}MB`],
    ['max_wal_size', `${limits.maxWalSizeMb}MB`],
    ['min_wal_size', '16MB'],
    ['temp_file_limit', `${limits.tempFileLimitMb}MB`],
    ['statement_timeout', `${limits.statementTimeoutSeconds}s`],
    ['default_transaction_read_only', mode === 'read_only' ? 'on' : 'off'],
    ['idle_in_transaction_session_timeout', '10min'],
    ['io_method', 'sync'],
    ['allow_alter_system', 'off'],
    ['password_encryption', "'scram-sha-256'"],
    ['recovery_init_sync_method', 'syncfs'],
    ['max_prepared_transactions', 0],
    ['max_logical_replication_workers', 0], // nobody may subscribe: one process less to start and to keep
    ['ssl', 'off'],
    ['archive_mode', 'on'],
    ['archive_timeout', '60s'],
    ['archive_command', archiveDir === null ? "'/bin/true'" : quoted(archiveCommand(archiveDir))],
    ['dynamic_shared_memory_type', 'posix'],
    ['timezone', "'UTC'"],
    ['log_timezone', "'UTC'"],
    ['log_line_prefix', "'%m [%p] '"],
    ['default_text_search_config', "'pg_catalog.english'"],
    ...(recovery ? recoverySettings(recovery) : []),
  ];
  return settings.map(([name, value]) => `${name} = ${value}\n`).join('');
}

/**
 * Copied under another name, synced, renamed: a segment that has its name is whole. One that is there already is success if it is the same, and
 * nothing is ever overwritten. Its time stays that of the last write to it. Runs in a shell under the instance's own uid.
 */
export function archiveCommand(directory: string): string {
  const file = (suffix = '') => `${shellWord(directory)}/%f${suffix}`;
  return `if test -e ${file()}; then cmp -s %p ${file()}; else cp -p %p ${file('.new')} && sync ${file('.new')} && mv ${file('.new')} ${file()} && sync ${shellWord(directory)}; fi`;
}

/** Nobody is served before the end: hot_standby off also lets a smaller plan recover what a larger one wrote. */
function recoverySettings({ stagedDir, target }: Recovery): [string, string][] {
  const until: [string, string][] = target === null ? []
    : target === 'consistent' ? [['recovery_target', "'immediate'"]] : [['recovery_target_time', quoted(target.toISOString().replace('T', ' ').replace('Z', '+00'))]];
  return [
    ['restore_command', quoted(`cp ${shellWord(stagedDir)}/%f %p`)], ['recovery_target_timeline', "'current'"], ['recovery_target_action', "'promote'"], ['hot_standby', 'off'], ...until,
  ];
}

/** One word of a shell in which `%` stands for itself. */
function shellWord(path: string): string {
  return `'${path.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** Customers come by TCP only: over the Unix socket the gateway's own uid could satisfy the peer rule. */
export const pgHbaConf = `local all holdfast_admin peer map=platform
local all all reject
host  all holdfast_admin all reject
host  all all 127.0.0.1/32 scram-sha-256
host  all all all reject
`;

/** While a copy is made a service's own, its former logins must not get in. */
export const closedHbaConf = `local all holdfast_admin peer map=platform
local all all reject
host  all all all reject
`;

/** `hostUser`: the user of the host process, the only one that may be holdfast_admin. */
export function pgIdentConf(hostUser: string): string {
  return `platform "${hostUser}" holdfast_admin\n`;
}
