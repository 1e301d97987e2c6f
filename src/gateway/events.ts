import { limit } from '../billing/service';
import { AppError, invalid, notFound } from '../core/errors';
import { isId, timeOfId } from '../core/ids';
import { readPage, type Page } from '../core/page';
import type { Tx } from '../db/transaction';
import { findZone, requireZone } from '../dns/service';
import type { GatewayDeps } from './deps';
import { replacePolicy, requireExclusionRoom, type PolicyRequest, type WrittenPolicy } from './policies';
import type { RuleFacts } from './rule-catalogue';
import { asGiven, parseNetwork } from './rules/networks';
import { retentionClass } from './rules/quotas';
import type { EventsQuery } from './schemas';
import { findEvent, listEvents, type EventRow } from './store/events';

type ReadDeps = Pick<GatewayDeps, 'db' | 'clock' | 'cursors'>;
type Range = { from: Date; to: Date; retentionFrom: Date };

const dayMs = 86_400_000;
const listDefault = 50;

/** Events of a zone, newest first, within the time they are kept. Errors: `not_found`, `validation_error`, `invalid_cursor`. */
export async function pageEvents(deps: ReadDeps, scope: { orgId: string; projectId: string; zoneId: string }, query: EventsQuery): Promise<Page<EventRow> & { range: Range }> {
  const zone = requireZone(await findZone(deps.db.prisma, scope.projectId, scope.zoneId));
  const range = await rangeOf(deps, scope.orgId, query);
  const { limit: _limit, cursor: _cursor, ...filter } = query;
  const page = await readPage<EventRow>(deps.cursors, { list: 'gateway.events', zoneId: zone.id, filter }, query, {
    limitDefault: listDefault, keyOf: ({ createdAt, id }) => [createdAt.toISOString(), id],
    fetch: (after, count) => listEvents(deps.db.prisma, {
      zoneId: zone.id, from: range.from > range.retentionFrom ? range.from : range.retentionFrom, to: range.to, actions: query.action ?? null, sources: query.source ?? null, ruleId: query.ruleId ?? null,
      ip: query.ip === undefined ? null : networkText(query.ip), country: query.country ?? null, host: query.host ?? null, pathLike: query.path === undefined ? null : likeOf(query.path),
      method: query.method ?? null, requestId: query.requestId ?? null,
    }, { after, limit: count }),
  });
  return { ...page, range };
}

/** Errors: `not_found` for one that is absent, of another zone or past its time. */
export async function readEvent(deps: ReadDeps, scope: { orgId: string; projectId: string; zoneId: string }, eventId: string): Promise<EventRow> {
  const zone = requireZone(await findZone(deps.db.prisma, scope.projectId, scope.zoneId));
  const at = isId('gwe', eventId) ? timeOfId(eventId) : null;
  const event = at ? await findEvent(deps.db.prisma, { zoneId: zone.id, id: eventId, at }) : null;
  if (!event || event.createdAt < await retentionFrom(deps, scope.orgId)) throw notFound('Event');
  return event;
}

export type Exclude = { event: EventRow; note: string | null; expiresAt: string | null };

/** The policy has what the event suggests: the rule no longer looks there. Errors: `invalid_state` for an event that suggests nothing; as replacePolicy. */
export function excludeEvent(tx: Tx, deps: Parameters<typeof replacePolicy>[1] & { ruleFacts: RuleFacts }, request: PolicyRequest, { event, note, expiresAt }: Exclude): Promise<WrittenPolicy> {
  return replacePolicy(tx, deps, request, ({ policy }) => {
    const { suggestedExclusion: wanted } = event;
    if (!wanted) throw new AppError('invalid_state', 'This event suggests no exclusion: no managed rule decided it.', { source: event.source });
    const { exclusions } = policy.managedRules;
    const same = exclusions.find((known) => known.ruleId === wanted.ruleId && known.target === wanted.target && known.pathPrefix === wanted.pathPrefix && known.expiresAt === expiresAt);
    if (same) return policy;
    requireExclusionRoom(exclusions.length);
    const added = { id: event.id.replace('_', '-'), ruleId: wanted.ruleId, tag: null, target: wanted.target, pathPrefix: wanted.pathPrefix, note, expiresAt };
    return { ...policy, managedRules: { ...policy.managedRules, exclusions: [...exclusions.filter(({ id }) => id !== added.id), added] } };
  });
}

async function rangeOf(deps: ReadDeps, orgId: string, query: EventsQuery): Promise<Range> {
  const to = query.to === undefined ? deps.clock.now() : new Date(query.to);
  const from = query.from === undefined ? new Date(to.getTime() - dayMs) : new Date(query.from);
  if (from >= to) throw invalid([{ path: 'from', message: 'must be before to' }]);
  return { from, to, retentionFrom: await retentionFrom(deps, orgId) };
}

async function retentionFrom(deps: Pick<GatewayDeps, 'db' | 'clock'>, orgId: string): Promise<Date> {
  return new Date(deps.clock.now().getTime() - retentionClass(await limit(deps.db.prisma, { orgId }, 'gateway.event_retention_days') ?? 30) * dayMs);
}

function networkText(given: string): string {
  const network = parseNetwork(given);
  return network ? asGiven(network) : given;
}

/** A prefix, or with `*` the whole path. */
function likeOf(path: string): string {
  const escaped = path.replace(/[\\%_]/g, '\\$&');
  return path.includes('*') ? escaped.replaceAll('*', '%') : `${escaped}%`;
}
