/** FATAL, with a SQLSTATE a client can act on (contract postgres.md §6.2, Refusals). */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(readonly sqlstate: '28000' | '57P03' | '53300' | '57P01', message: string) {
    super(message);
  }
}

export const restarting = () => new Refusal('57P01', 'The gateway is being restarted; connect again.');
