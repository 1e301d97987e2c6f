import { createPublicKey } from 'node:crypto';
import { createGatewayActivities } from '../../activities/gateway';
import { activityInterceptor } from '../../activities/steps';
import { certify, createAuthority } from '../../src/core/certificates';
import { ensureZoneCertificates } from '../../src/gateway/service';
import type { CertificateIssuer } from '../../src/gateway/ports';
import { silent } from '../support/accepted-work';
import { withGatewayApi } from '../support/gateway-api';
import { createTenant } from '../support/tenant';
import { withTemporal } from '../support/temporal';
import { torture, type World } from '../support/torture';
import { withWorkflowLab } from '../support/workflow-lab';

const world = withGatewayApi();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: world.api.deps.db, log: silent }) });
const authority = createAuthority('test');

/** Leaves its proof behind, as one whose process ends while it waits. */
const issuer: CertificateIssuer = {
  name: 'acme', caaIdentities: () => Promise.resolve([]),
  async issue({ hostnames, keyPem, saveResumeUrl, respond }) {
    await saveResumeUrl('https://acme.test/order/1');
    await respond.put(hostnames[0] ?? '', `token-of-${hostnames[0]}`, 'proof');
    return { chainPem: certify(authority, { dnsNames: hostnames, ipAddresses: [] }, { publicKey: createPublicKey(keyPem), days: 90 }) };
  },
};
const activities = () => createGatewayActivities({ ...world.api.deps, certificateIssuer: issuer, certificateIssuerName: 'acme', dnsPlatform: world.api.deps.dnsPlatform });
const rowOf = async (id: string) => (await world.sql(`select c.status, c.attempts, c.chain is not null as serves, c.last_error_code as error, c.next_attempt_at > now() + interval '30 minutes' as "isPaused",
  c.next_key_sealed is null and c.next_chain is null and c.order_url is null as "isClear", (select count(*)::int from gateway_acme_token t where t.certificate_id = c.id) as proofs,
  o.state from gateway_certificate c join operation o on o.resource_id = c.id where c.id = $1`, id))[0];

async function ordered(): Promise<{ certificateId: string; generation: number; operationId: string }> {
  const { db, config } = world.api.deps;
  const zone = await world.zone({ tenant: await createTenant(db, config.AUTH_SECRET) });
  await ensureZoneCertificates({ ...world.api.deps, certificateIssuerName: 'acme' }, zone.id);
  await world.sql(`update gateway_certificate set method = 'http01' where zone_id = $1`, zone.id);
  const [row] = await world.sql('select c.id, o.id as "operationId" from gateway_certificate c join operation o on o.resource_id = c.id where c.zone_id = $1', zone.id);
  return { certificateId: String(row?.['id']), generation: 1, operationId: String(row?.['operationId']) };
}

test('ensureCertificate: whatever happens at any step, it serves or says why not and when next, and no proof is left behind', async () => {
  const called = await torture(lab, {
    workflow: 'ensureCertificate', withoutEnd: ['removeChallenge'],
    begin: async (): Promise<World> => {
      const run = await ordered();
      return {
        input: run, activities: activities(),
        verify: async ({ end }, { torment, step }) => {
          const row = await rowOf(run.certificateId);
          const adopted = end === 'completed' || step === 'removeChallenge' || (step === 'markValid' && torment !== null && torment !== 'refused before its effect' && torment !== 'refused, every undo run twice');
          if (adopted) expect(row).toMatchObject({ status: 'valid', serves: true, error: null, attempts: 0, isClear: true, proofs: 0, state: 'succeeded' });
          else if (end === 'cancelled') expect(row).toMatchObject({ status: 'failed', serves: false, isPaused: false, isClear: true, proofs: 0, state: 'cancelled' });
          else expect(row).toMatchObject({ status: 'failed', serves: false, error: 'backend_error', attempts: 1, isPaused: true, isClear: true, proofs: 0, state: 'failed' });
        },
      };
    },
  });
  expect(called).toEqual(['loadCertificateOrder', 'markIssuing', 'checkCaa', 'obtainCertificate', 'markValid', 'removeChallenge']);
}, 300_000);

test('a run leaves neither key nor proof nor name in its history', async () => {
  const run = await ordered();
  const { workflowId, end } = await lab.run({ workflow: 'ensureCertificate', input: run, activities: activities() });
  expect(end).toBe('completed');
  const history = Buffer.from(await lab.history(workflowId)).toString('latin1');
  const [row] = await world.sql('select primary_hostname as name, serial_number as serial from gateway_certificate where id = $1', run.certificateId);
  expect(history).toContain(run.certificateId);
  for (const secret of ['PRIVATE KEY', 'CERTIFICATE', 'token-of', 'acme.test', String(row?.['name']), String(row?.['serial'])]) expect(history).not.toContain(secret);
});

test('ensureCertificate retires a certificate whose name is no longer served', async () => {
  const run = await ordered();
  await world.sql(`update dns_zone set deleted_at = now(), purge_at = now() + interval '1 day', served = false where id = (select zone_id from gateway_certificate where id = $1)`, run.certificateId);
  expect(await lab.run({ workflow: 'ensureCertificate', input: run, activities: activities() })).toMatchObject({ end: 'completed', result: 'done', calls: ['loadCertificateOrder', 'markRetired'] });
  expect(await rowOf(run.certificateId)).toMatchObject({ status: 'retired', serves: false, isClear: true, state: 'cancelled' });
});
