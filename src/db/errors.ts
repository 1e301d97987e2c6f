/**
 * The SQLSTATE behind an error of Prisma or of `pg`, and the constraint it names; null when it is no database error.
 * Stores use it to turn a unique violation into one of our codes.
 */
export function databaseError(error: unknown): { sqlState: string; constraint: string | null; message: string } | null {
  for (let cause: unknown = error, depth = 0; typeof cause === 'object' && cause !== null && depth < 6; depth++) {
    const found = sqlStateOf(cause);
    if (found) return { sqlState: found, constraint: constraintOf(cause), message: textOf(cause, 'originalMessage') ?? textOf(cause, 'message') ?? '' };
    cause = next(cause);
  }
  return null;
}

/** True for a violation of this unique, check, exclusion or foreign-key constraint. */
export function violates(error: unknown, constraint: string): boolean {
  const found = databaseError(error);
  return found !== null && found.sqlState.startsWith('23') && (found.constraint === constraint || found.message.includes(`"${constraint}"`));
}

function sqlStateOf(cause: object): string | null {
  for (const key of ['originalCode', 'code']) {
    const value = textOf(cause, key);
    if (value && /^[0-9A-Z]{5}$/.test(value) && !/^P[12]\d{3}$/.test(value)) return value;
  }
  return null;
}

function constraintOf(cause: object): string | null {
  const direct = textOf(cause, 'constraint');
  if (direct) return direct;
  if (!('constraint' in cause) || typeof cause.constraint !== 'object' || cause.constraint === null) return null;
  return textOf(cause.constraint, 'index');
}

/** Prisma hangs the driver's error under `meta.driverAdapterError.cause`, others under `cause`. */
function next(cause: object): unknown {
  if ('meta' in cause && typeof cause.meta === 'object' && cause.meta !== null && 'driverAdapterError' in cause.meta) return cause.meta.driverAdapterError;
  return 'cause' in cause ? cause.cause : null;
}

function textOf(holder: object, key: string): string | null {
  const value: unknown = Reflect.get(holder, key);
  return typeof value === 'string' ? value : null;
}
