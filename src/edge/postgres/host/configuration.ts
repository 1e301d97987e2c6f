import type { AccessMode, Limits } from '../../../postgres/rules';

export type ServerSettings = { port: number; socketDir: string; limits: Limits; mode: AccessMode };

/** Connections of a server beyond its customer's: reserved_connections and superuser_reserved_connections. */
export const connectionsReserved = 5;

/** Settings a customer cannot change: allow_alter_system is off, and what is left to a role is called a default (contract postgres.md §6.1, §8). */
export function postgresqlConf({ port, socketDir, limits, mode }: ServerSettings): string {
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
    ['ssl', 'off'],
    ['archive_mode', 'on'],
    ['archive_timeout', '60s'],
    ['archive_command', "'/bin/true'"],
    ['dynamic_shared_memory_type', 'posix'],
    ['timezone', "'UTC'"],
    ['log_timezone', "'UTC'"],
    ['log_line_prefix', "'%m [%p] '"],
    ['default_text_search_config', "'pg_catalog.english'"],
  ];
  return settings.map(([name, value]) => `${name} = ${value}\n`).join('');
}

/** Customers come by TCP only: over the Unix socket the gateway's own uid could satisfy the peer rule. */
export const pgHbaConf = `local all holdfast_admin peer map=platform
local all all reject
host  all holdfast_admin all reject
host  all all 127.0.0.1/32 scram-sha-256
host  all all all reject
`;

/** `hostUser`: the user of the host process, the only one that may be holdfast_admin. */
export function pgIdentConf(hostUser: string): string {
  return `platform "${hostUser}" holdfast_admin\n`;
}
