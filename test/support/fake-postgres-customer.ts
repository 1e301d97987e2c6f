import type { CustomerLogin, PostgresCustomer } from '../../src/postgres/ports';

/** Lets in who knows a password whose verifier a fake server has; remembers every login. */
export class FakePostgresCustomer implements PostgresCustomer {
  readonly logins: CustomerLogin[] = [];
  before: () => Promise<void> | void = () => undefined;

  async prove(login: CustomerLogin): Promise<void> {
    this.logins.push(login);
    await this.before();
  }
}
