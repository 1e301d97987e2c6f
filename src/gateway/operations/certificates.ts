import { operationsOf } from '../../http/operation';
import { viewOperation } from '../../operations/view';
import { pageCertificates, renewCertificate } from '../certificates';
import type { GatewayDeps } from '../deps';
import { certificatesAnswer, pagedQuery, renewedAnswer } from '../schemas';
import { viewCertificate } from '../view';
import { base, tag } from './shown';

const { project } = operationsOf<GatewayDeps>();

const listGatewayCertificates = project('dns:read')({
  id: 'listGatewayCertificates', method: 'get', path: `${base}/certificates`, tag,
  summary: 'Certificates of the names the gateway serves',
  query: pagedQuery, answer: certificatesAnswer, errors: ['invalid_cursor'],
  handle: async ({ deps, caller, params: { zoneId }, query }) => {
    const { items, ...page } = await pageCertificates(deps, caller.project.id, zoneId, query);
    return { certificates: items.map(viewCertificate), ...page };
  },
});

const renewGatewayCertificate = project('dns:policy')({
  id: 'renewGatewayCertificate', method: 'post', path: `${base}/certificates/:certificateId/renew`, tag,
  summary: 'Order a certificate anew',
  description: 'What is there serves on until the new one has come.',
  answer: renewedAnswer, errors: ['invalid_state', 'service_suspended', 'rate_limited'],
  handle: ({ deps, caller, params: { zoneId, certificateId }, cause, transact }) => transact(async (tx) => {
    const { certificate, operation } = await renewCertificate(tx, deps, { projectId: caller.project.id, zoneId, certificateId, cause });
    return { certificate: viewCertificate(certificate), operation: viewOperation(operation) };
  }),
});

export const certificateOperations = [listGatewayCertificates, renewGatewayCertificate];
