/**
 * What a step of accepted work may throw beside AppError, which ends the job with its code. Everything else that is thrown
 * counts as a fault of the moment and is tried again.
 */

/** A newer intent owns the resource: the run ends without compensation, the newer one cleans up. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
  constructor(message = 'A newer intent owns the resource.') {
    super(message);
  }
}

/**
 * Not now: a provider said when to come back (`afterMs`), or what is waited for is not there yet (`expected`: no fault,
 * no warning). The message goes into the history: no address, no secret.
 */
export class TryLater extends Error {
  override readonly name = 'TryLater';
  constructor(message: string, readonly options: { afterMs?: number; expected?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
  }
}
