import { operationsOf, type RateRule, type RequestFacts } from '../../http/operation';
import type { Cause } from '../../core/caller';
import { readPage, type Page, type PageRequest, unpagedMax } from '../../core/page';
import type { Asked } from '../accounts';
import type { IdentityDeps } from '../deps';
import type { After } from '../store/orgs';

export const { open, self, org, project } = operationsOf<IdentityDeps>();

export function asked(cause: Cause, request: RequestFacts): Asked {
  return { cause, ip: request.ip, userAgent: request.userAgent };
}

/** A list whose rows are ordered by `(created_at desc, id desc)`. */
export function newestFirst<T extends { createdAt: Date }>(
  deps: IdentityDeps, list: unknown, request: PageRequest, from: { idOf: (row: T) => string; fetch: (after: After, limit: number) => Promise<T[]> },
): Promise<Page<T>> {
  return readPage(deps.cursors, list, request, {
    limitDefault: unpagedMax,
    keyOf: (row: T) => [row.createdAt.toISOString(), from.idOf(row)],
    fetch: (after, limit) => from.fetch(after && { createdAt: String(after[0]), id: String(after[1]) }, limit),
  });
}

/** Guesses of a secret, of one kind: per client address and per account. */
export function guessLimits(deps: IdentityDeps, what: 'sign-in' | 'setup' | 'password', { ip, account }: { ip: string; account: string }): { rule: RateRule; key: string }[] {
  const rule = { limit: deps.config.RATE_SIGN_IN_PER_MINUTE, periodSeconds: 60 };
  return [{ rule: { name: `${what}-address`, ...rule }, key: ip }, { rule: { name: `${what}-account`, ...rule }, key: account }];
}

/** Mails somebody may cause at an address that is not proved to be theirs. */
export function mailLimits(deps: IdentityDeps, ip: string, account: string): { rule: RateRule; key: string }[] {
  const { RATE_RESET_PER_HOUR: perAccount, RATE_RESET_ADDRESS_PER_HOUR: perAddress } = deps.config;
  return [
    { rule: { name: 'account-mail-address', limit: perAddress, periodSeconds: 3_600 }, key: ip },
    { rule: { name: 'account-mail-account', limit: perAccount, periodSeconds: 3_600 }, key: account },
  ];
}
