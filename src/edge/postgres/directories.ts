import { statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '../../config';
import { isMissing } from '../../core/files';

export type DirectoryConfig = Pick<Config, 'HOLDFAST_DATA_DIR' | 'HOLDFAST_INSTALLATION' | 'PG_DATA_DIR' | 'PG_RUN_DIR'> & Partial<Pick<Config, 'PG_BACKUP_DIR'>>;
export type PostgresDirectories = { data: string; run: string; backups: string };

/**
 * Where instances and sockets are (contract postgres.md §6.1). As root every instance has a uid of its own, which must be
 * able to walk to its directory: below a private home they move to /var/lib.
 */
export function postgresDirectories(config: DirectoryConfig, asRoot: boolean = process.getuid?.() === 0): PostgresDirectories {
  const near = resolve(config.HOLDFAST_DATA_DIR, 'postgres');
  const far = `/var/lib/holdfast/${config.HOLDFAST_INSTALLATION}/postgres`;
  const installation = config.HOLDFAST_INSTALLATION.slice(0, 8);
  const data = config.PG_DATA_DIR ? resolve(config.PG_DATA_DIR) : asRoot && blockedAncestor(near) ? far : near;
  return {
    data,
    backups: config.PG_BACKUP_DIR ? resolve(config.PG_BACKUP_DIR) : join(data, 'backups'),
    run: config.PG_RUN_DIR ? resolve(config.PG_RUN_DIR) : `${asRoot ? '/run' : '/tmp'}/holdfast-${installation}`,
  };
}

/** The highest existing directory on the way to `path`, itself included, that strangers may not traverse; null when there is none. */
export function blockedAncestor(path: string): string | null {
  const above = dirname(path) === path ? null : blockedAncestor(dirname(path));
  if (above) return above;
  try {
    return (statSync(path).mode & 0o001) === 0 ? path : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Certificate authority of the Postgres gateway as clients of this machine find it. */
export function authorityFile(directories: Pick<PostgresDirectories, 'data'>): string {
  return join(directories.data, 'tls', 'ca.pem');
}
