import type { AccessMode, Limits, Names } from './rules';

/** A service as a backend sees it. `generation` is the fence: lower ones than the highest seen are refused, also after destruction. */
export type Ref = { serviceId: string; generation: number; hostId: string; instanceRef: string | null; names: Names; limits: Limits };

/** A role customers connect with. `validUntil`: RFC 3339; the server refuses the password from that second on. */
export type Login = { name: string; verifier: string; connectionLimit: number; validUntil: string | null; enabled: boolean };

export type Source = { kind: 'retained' } | { kind: 'backup'; serviceId: string; backupId: string; targetTime: string | null };

export type Metrics = {
  connections: { active: number; idle: number; waiting: number; limit: number };
  /** Running totals since the statistics were reset: rates are made by whoever has two of them. */
  transactions: number;
  blocksHit: number;
  blocksRead: number;
  walBytes: number;
  oldestTransactionSeconds: number;
  blockedSessions: number;
};

export type Observation = {
  /** Null when it could not be measured. */
  usedBytes: number | null;
  compute: 'running' | 'idle' | 'stopped';
  mode: AccessMode;
  /** What the server has per login; empty while it does not run, which is not waked for this. */
  verifiers: Readonly<Record<string, string>>;
  metrics: Metrics | null;
  newestArchivedWal: string | null;
  systemId: string | null;
  /** When the pool last logged in to this instance as a customer would; verifying an access may rest on it for a day. */
  provenAt: string | null;
};

/** What was read of a backup that became a database again, for a moment. */
export type Drill = { systemId: string; tables: number; rows: number };

export type InventoryItem = { instanceRef: string; serviceId: string | null; retained: boolean };

/**
 * Where databases live (contract postgres.md §6). Every method is safe twice, has a deadline and answers with our codes alone:
 * `no_capacity`, `stale_generation`, `restore_unavailable`, `backend_error`; the server's own words stay in `cause`, scrubbed.
 */
export interface PostgresBackend {
  readonly name: 'embedded' | 'host_pool' | 'cnpg';
  readonly can: { idleStop: boolean; pointInTime: boolean; createDatabases: boolean; gateway: boolean };
  /** Room is kept for the service; a ready instance of the plan's pool, when there is one, is bound to it. */
  place(r: Ref & { version: string }): Promise<{ instanceRef: string }>;
  /** An instance bound to this service runs. */
  ensureInstance(r: Ref & { version: string }): Promise<{ host: string; port: number; systemId: string | null }>;
  /**
   * Exactly these logins, with these verifiers, may connect, which was read back from the server; sessions of `endSessionsOf` are ended. `provenAt`: as in
   * an observation.
   */
  ensureAccess(r: Ref & { logins: Login[]; endSessionsOf: string[] }): Promise<{ provenAt: string | null }>;
  /** The limits of `r` hold; a running instance may restart once, one that does not run stays so. */
  setLimits(r: Ref): Promise<{ restarted: boolean }>;
  /**
   * The mode holds, also after the next start; an instance that does not run is not started for it. `stop`: it is stopped as well, and
   * stays so until `ensureInstance`. Blocked raises the fence before it waits for anything.
   */
  setAccessMode(r: Ref & { mode: AccessMode; stop: boolean }): Promise<void>;
  observe(r: Ref): Promise<Observation>;
  snapshot(r: Ref & { backupId: string }): Promise<{ sizeBytes: number; from: string; systemId: string }>;
  /**
   * The service has an instance with the source's data: not running, closed to everybody, no login with a password. `ensureInstance` starts it and
   * `ensureAccess` opens it. `retained`: the service's own data moves back; nothing happens when it did before. `backup`: a placed instance is filled,
   * its roles called after the service. Errors: `restore_unavailable` when the source is not there or does not reach the time.
   */
  restore(r: Ref & { source: Source }): Promise<{ reachedTime: string | null }>;
  /** Nothing of the instance is left but, with `retain`, its stopped data. Absent is success. */
  destroy(r: Ref & { retain: boolean }): Promise<void>;
  dropBackup(serviceId: string, backupId: string): Promise<void>;
  /** The backup is restored in a place of its own, every table of it read in full, and nothing of that is left. Errors: `restore_unavailable`. */
  drill(serviceId: string, backupId: string): Promise<Drill>;
  inventory(hostId: string): Promise<InventoryItem[]>;
}

/** What a customer uses to get in; `trust` is what their client checks the gateway with. */
export type CustomerLogin = {
  host: string; port: number; database: string; user: string; password: string; sslmode: 'verify-full' | 'require'; caCertificate: string | null; timeoutMs: number;
};

/** A customer's own way in: over the public address with TLS, with nothing the platform knows beside it. */
export interface PostgresCustomer {
  /** Logged in, created, inserted, read and dropped. Errors: `verification_failed`; what the server said stays in `cause`. */
  prove(login: CustomerLogin): Promise<void>;
}
