import pg from 'pg';
import { AppError } from '../../core/errors';
import type { CustomerLogin, PostgresCustomer } from '../../postgres/ports';

// One simple query is one transaction: whatever interrupts it, nothing of it is left in the customer's database.
const proof = `create table holdfast_proof (n int); insert into holdfast_proof values (41); update holdfast_proof set n = n + 1;
  select n from holdfast_proof; drop table holdfast_proof`;

/** Proves a login the way `psql` would with the same string: TLS, verified as it says, SCRAM, then a little of everything. */
export const pgCustomer: PostgresCustomer = {
  prove: async (login) => {
    const client = new pg.Client(optionsOf(login));
    client.on('error', () => undefined);
    try {
      await client.connect();
      if (!provesRead(await client.query(proof))) throw new Error('The row that was written was not read back.');
    } catch (error) {
      throw new AppError('verification_failed', 'The database did not serve its own credentials.', {}, { cause: error });
    } finally {
      await client.end().catch(() => undefined);
    }
  },
};

function optionsOf({ host, port, database, user, password, sslmode, caCertificate, timeoutMs }: CustomerLogin): pg.ClientConfig {
  return {
    host, port, database, user, password,
    ssl: { rejectUnauthorized: sslmode === 'verify-full', ...(caCertificate === null ? {} : { ca: caCertificate }), servername: host, minVersion: 'TLSv1.2' },
    connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, application_name: 'holdfast-verify',
  };
}

/** `pg` answers several statements with a list its types do not know. */
function provesRead(results: unknown): boolean {
  return Array.isArray(results) && results.some((result: unknown) => typeof result === 'object' && result !== null && 'rows' in result
    && Array.isArray(result.rows) && typeof result.rows[0] === 'object' && result.rows[0] !== null && Reflect.get(result.rows[0], 'n') === 42);
}
