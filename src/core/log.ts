import { pino, type DestinationStream, type Logger } from 'pino';

export type Log = Pick<Logger, 'info' | 'warn' | 'error' | 'debug' | 'fatal' | 'child'>;

/** Keys whose values never reach a log line, at any of the first levels. */
const redacted = ['password', 'token', 'secret', 'key', 'cookie', 'authorization', 'connectionString', 'currentPassword', 'newPassword'];

/** JSON lines, on standard output unless told otherwise: request id, project, resource, code; never bodies or secrets. */
export function createLog(process: string, level: string, destination?: DestinationStream): Logger {
  return pino({
    level,
    base: { process },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: redacted.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]), censor: '[secret]' },
    serializers: { err: scrubError, error: scrubError },
  }, destination ?? pino.destination(1));
}

/** An error as its kind, code, message and stack. Database drivers hang statements and rows on theirs: those stay out. */
function scrubError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return {
    type: error.name,
    code: 'code' in error ? error.code : undefined,
    message: error.message,
    stack: error.stack,
    cause: error.cause instanceof Error ? { type: error.cause.name, message: error.cause.message, stack: error.cause.stack } : undefined,
  };
}
