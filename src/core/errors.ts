/** The closed union of error codes and the one status each stands for (contract api.md §4). Append only. */
export const statusOfCode = {
  validation_error: 400, invalid_json: 400, invalid_cursor: 400, unsupported_media_type: 400, payload_too_large: 400,
  message_too_large: 400, conflict: 400, zone_exists: 400, domain_not_found: 400, type_immutable: 400, duplicate_record: 400,
  cname_conflict: 400, cname_loop: 400, delegation_conflict: 400, null_mx_conflict: 400, mixed_proxy: 400,
  origin_not_allowed: 400, rrset_too_large: 400, invalid_state: 400, deletion_protected: 400, slug_taken: 400,
  already_member: 400, last_owner: 400, invalid_token: 400, invalid_domain: 400, domain_exists: 400, unsafe_regex: 400,
  rule_set_unavailable: 400, idempotency_key_reused: 400, precondition_failed: 400,
  unauthenticated: 401, invalid_credentials: 401, invalid_api_key: 401, invalid_signature: 401,
  quota_exceeded: 402, plan_limit_reached: 402, payment_required: 402, trial_already_used: 402, spend_limit_reached: 402,
  forbidden: 403, insufficient_scope: 403, csrf_rejected: 403, domain_not_verified: 403, domain_not_allowed: 403,
  reauthentication_required: 403, service_suspended: 403, managed_record: 403,
  not_found: 404, route_not_found: 404,
  rate_limited: 429, idempotency_in_progress: 429, too_many_pending: 429,
  internal_error: 500, no_capacity: 500, deadline_exceeded: 500, verification_failed: 500, backend_error: 500,
  restore_unavailable: 500, stale_generation: 500, certificate_caa_forbids: 500, certificate_rejected: 500,
  certificate_not_served: 500,
} as const;

export type ErrorCode = keyof typeof statusOfCode;
export type Issue = { path: string; message: string };

/** True when the text is one of our codes; codes cross process borders as strings (operation rows, workflow failures). */
export function isErrorCode(text: unknown): text is ErrorCode {
  return typeof text === 'string' && Object.hasOwn(statusOfCode, text);
}

/**
 * The only error that reaches a client as it is: a code, one sentence for a person, and facts that stand beside them.
 * What happened underneath goes into `cause`, which is logged and never sent.
 */
export class AppError extends Error {
  override readonly name = 'AppError';
  readonly status: number;

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly facts: Readonly<Record<string, unknown>> = {},
    options?: { cause?: unknown; retryAfterSeconds?: number },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.status = statusOfCode[code];
    this.retryAfterSeconds = this.status === 429 ? (options?.retryAfterSeconds ?? 1) : undefined;
  }

  /** Seconds for Retry-After; set on every 429. */
  readonly retryAfterSeconds: number | undefined;
}

/** 404 for what is absent and for what belongs to somebody else; `kind` as a person says it: 'Postgres service'. */
export function notFound(kind: string): AppError {
  return new AppError('not_found', `${kind} not found.`);
}

/** 400 `validation_error` naming every fault. */
export function invalid(issues: readonly Issue[]): AppError {
  const [first] = issues;
  const message = issues.length === 1 && first ? faultSentence(first) : `The request has ${issues.length} faults; see issues.`;
  return new AppError('validation_error', message, { issues });
}

function faultSentence(issue: Issue): string {
  const text = issue.path ? `${issue.path}: ${issue.message}` : issue.message.charAt(0).toUpperCase() + issue.message.slice(1);
  return /[.?!]$/.test(text) ? text : `${text}.`;
}
