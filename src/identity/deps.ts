import type { Config } from '../config';
import type { Cause, SessionCaller } from '../core/caller';
import type { Cursors } from '../core/cursor';
import type { Id } from '../core/ids';
import type { Secrets } from '../core/secrets';
import type { Database, Db } from '../db/client';
import type { Tx } from '../db/transaction';
import type { Engine } from './engine';

/** Who does it, and what goes into the audit. */
export type By<C extends SessionCaller = SessionCaller> = { caller: C; cause: Cause };

/** What identity's decisions need; deps.ts provides it. */
export interface IdentityDeps {
  db: Database;
  config: Pick<Config, 'AUTH_SECRET' | 'PUBLIC_URL' | 'SIGNUP_MODE' | 'ACCOUNT_MAIL' | 'EMAIL_VERIFICATION' | 'SESSION_IDLE_DAYS' | 'SESSION_MAX_DAYS'
    | 'SESSION_FRESH_SECONDS' | 'LIMIT_OWNED_ORGS' | 'LIMIT_PROJECTS' | 'LIMIT_MEMBERS' | 'LIMIT_PENDING_INVITATIONS' | 'RATE_SIGN_IN_PER_MINUTE'
    | 'RATE_SIGN_UP_PER_HOUR' | 'RATE_RESET_PER_HOUR' | 'RATE_RESET_ADDRESS_PER_HOUR' | 'RATE_INVITATIONS_PER_DAY'>;
  secrets: Secrets;
  cursors: Cursors;
  engine: Engine;
  /** Products whose resources live in projects. */
  productDeletions: readonly ProductDeletion[];
  /** Starts the workflow of an account mail, bounded and not awaited; the relay repeats what fails. */
  startAccountMail(mailId: string): void;
}

/** What deleting a project asks of a product; the products' service.ts provide it through deps.ts. */
export interface ProductDeletion {
  /** What a client calls these: goes into `conflicts [{kind, count}]`. */
  readonly kind: string;
  /** Begins the deletion of everything the product holds in the project. Safe again: what is on its way stays so. */
  requestDeletion(tx: Tx, projectId: Id<'prj'>): Promise<unknown>;
  /** How many are not gone yet; gone is deleted, whatever retention keeps. */
  countLive(db: Db, projectIds: readonly Id<'prj'>[]): Promise<number>;
}
