import { isGrpcServiceError, type Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { temporal } from '@temporalio/proto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../core/log';
import { searchAttributeNames } from './search-attributes';

const keyword = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
/** gRPC status codes; the numbers are the protocol's. */
const alreadyExists = 6;
const notFound = 5;

/**
 * The namespace exists with its retention, and has our search attributes. Safe to run by every process at once and
 * again at every start. A new namespace is known to all parts of a server only after seconds: waits `waitMs` for it.
 * Errors: the server cannot be reached, or the namespace does not become usable in time.
 */
export async function bootstrapTemporal(
  connection: Connection, options: { namespace: string; retentionHours: number; log: Log; waitMs?: number },
): Promise<void> {
  const { namespace, retentionHours, log } = options;
  await ensureNamespace(connection, namespace, retentionHours, log);
  const until = Date.now() + (options.waitMs ?? 30_000);
  for (;;) {
    const missing = await ensureSearchAttributes(connection, namespace).catch((error: unknown) => {
      if (isGrpcServiceError(error) && error.code === notFound) return searchAttributeNames;
      throw error;
    });
    if (missing.length === 0) return;
    if (Date.now() > until) throw new Error(`Temporal's namespace ${namespace} does not show the search attributes ${missing.join(', ')}.`);
    await delay(200);
  }
}

async function ensureNamespace(connection: Connection, namespace: string, retentionHours: number, log: Log): Promise<void> {
  const retention = msToTs(retentionHours * 3_600_000);
  const described = await connection.workflowService.describeNamespace({ namespace }).catch((error: unknown) => {
    if (isGrpcServiceError(error) && error.code === notFound) return null;
    throw error;
  });
  if (!described) {
    log.info({ namespace }, 'making the Temporal namespace');
    await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: retention })
      .catch((error: unknown) => unlessExists(error));
    return;
  }
  if (Number(described.config?.workflowExecutionRetentionTtl?.seconds ?? 0) === Number(retention.seconds)) return;
  await connection.workflowService.updateNamespace({ namespace, config: { workflowExecutionRetentionTtl: retention } });
}

/** Adds what is absent; answers what is not visible yet. */
async function ensureSearchAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const present = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = searchAttributeNames.filter((name) => !(name in (present.customAttributes ?? {})));
  if (missing.length > 0) {
    await connection.operatorService.addSearchAttributes({
      namespace, searchAttributes: Object.fromEntries(missing.map((name) => [name, keyword])),
    }).catch((error: unknown) => unlessExists(error));
  }
  return missing;
}

function unlessExists(error: unknown): void {
  if (!isGrpcServiceError(error) || error.code !== alreadyExists) throw error;
}
