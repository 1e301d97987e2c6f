import { optionsAnswer } from '../../src/postgres/schemas';
import { registerHost } from '../../src/postgres/store/hosts';
import { createdService, read, withPostgresApi } from '../support/postgres-api';

const api = withPostgresApi();

describe('getPostgresOptions', () => {
  test('names every plan with its limits, every region with its versions, and the defaults of a creation', async () => {
    await registerHost(api.database.prisma, { name: 'far', region: 'far-away', backend: 'embedded', capacityBytes: 1, maxServices: 1 });
    const answer = await api.ask('GET', '/postgres/options', { as: 'viewer' });
    expect(answer.status).toBe(200);
    const { options } = optionsAnswer.parse(answer.body);
    expect(options.plans.map(({ code }) => code)).toEqual(['trial', 'starter', 'launch', 'growth', 'business']);
    expect(options.plans[0]?.limits).toMatchObject({ storageBytes: 512 * 1024 ** 2, connections: 10, statementTimeoutSeconds: 60, trialDays: 14, backupRetentionDays: 0 });
    expect(options.regions).toEqual([{ slug: 'local', isolation: 'instance', versions: ['18'] }, { slug: 'far-away', isolation: 'instance', versions: ['18'] }]);
    expect(options.defaults).toEqual({ region: 'local', version: '18' });
    const { serviceId } = await createdService(api.ask, { region: 'far-away', version: '18' });
    expect(read.service(await api.ask('GET', `/postgres/services/${serviceId}`))).toMatchObject({ region: 'far-away', version: '18' });
  });
});
