import type { Cause } from '../core/caller';
import { AppError, invalid } from '../core/errors';
import { newId } from '../core/ids';
import { readPage, type Page, type PageRequest } from '../core/page';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import type { MailDeps } from './deps';
import { noSuppression, requireService } from './faults';
import { recordNotice } from './notices';
import { addressKey, parseAddress } from './rules/addresses';
import { loadService, type ServiceRow } from './store/services';
import { deleteSuppression, findSuppression, insertSuppression, listSuppressions, type SuppressionReason, type SuppressionRow, type SuppressionScope } from './store/suppressions';

const limitDefault = 25;

/** Suppressions of a service in force, newest first. Errors: `invalid_cursor`. */
export function pageSuppressions(
  deps: Pick<MailDeps, 'db' | 'cursors'>, serviceId: string, query: PageRequest & { address?: string | undefined; reason?: SuppressionReason | undefined },
): Promise<Page<SuppressionRow>> {
  const filter = { serviceId, addressKey: query.address === undefined ? null : addressKey(query.address), reason: query.reason ?? null };
  return readPage(deps.cursors, { list: 'mail.suppressions', ...filter }, query, {
    limitDefault, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listSuppressions(deps.db.prisma, filter, { after, limit }),
  });
}

type Place = Pick<ServiceRow, 'id' | 'orgId' | 'projectId'>;

/** Nothing is sent to the address any more; one that is suppressed already stays as it is. Errors: `validation_error`. */
export async function suppress(tx: Tx, service: Place, { body, cause }: { body: { address: string; note?: string | null | undefined }; cause: Cause }): Promise<SuppressionRow> {
  const parsed = parseAddress(body.address);
  if ('fault' in parsed) throw invalid([{ path: 'address', message: parsed.fault }]);
  const key = addressKey(parsed.value);
  const made = await insertSuppression(tx, {
    id: newId('sup'), serviceId: service.id, address: parsed.value, addressKey: key, reason: 'manual', sourceMessageId: null, note: body.note ?? null, expiresAt: null,
  });
  const suppression = made ?? await findSuppression(tx, service.id, key);
  if (!suppression) throw new AppError('conflict', 'The suppression was deleted at the same moment. Repeat the request.');
  if (made) await tell(tx, service, made, { cause, type: 'suppression.created' });
  return suppression;
}

/** Mail to the address goes out again. Errors: `not_found` for what is absent, foreign or over. */
export async function unsuppress(tx: Tx, scope: SuppressionScope, { suppressionId, cause }: { suppressionId: string; cause: Cause }): Promise<SuppressionRow> {
  const deleted = await deleteSuppression(tx, scope, suppressionId);
  if (!deleted) throw noSuppression();
  await tell(tx, requireService(await loadService(tx, deleted.mailServiceId)), deleted, { cause, type: 'suppression.deleted' });
  return deleted;
}

/** The audit names no address. */
async function tell(tx: Tx, { id, orgId, projectId }: Place, row: SuppressionRow, { cause, type }: { cause: Cause; type: 'suppression.created' | 'suppression.deleted' }): Promise<void> {
  await recordNotice(tx, { mailServiceId: id, type, recipient: row.address, facts: { suppressionId: row.id, reason: row.reason } });
  const [from, to] = type === 'suppression.created' ? [null, row.reason] : [row.reason, null];
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'mailSuppression', id: row.id }, changes: [{ field: 'reason', from, to }] });
}
