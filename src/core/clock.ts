/** Where "now" comes from; tests move it. Durable times come from the database's own clock. */
export interface Clock {
  now(): Date;
}

export const systemClock: Clock = { now: () => new Date() };
