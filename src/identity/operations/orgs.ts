import { z } from 'zod';
import { displayName, flag } from '../../core/fields';
import { notFound } from '../../core/errors';
import { pageAnswer, pageQuery } from '../../core/page';
import { Reply } from '../../http/operation';
import { operationSchema, viewOperation } from '../../operations/view';
import { listAudit, verifyChain } from '../audit-log';
import { deleteOrg, deleteProject } from '../deletion';
import { changeOrg, changeProject, createOrg, createProject } from '../orgs';
import { getOrg, getProject, listOrgs, listProjects } from '../store/orgs';
import { auditEntrySchema, auditQuery, nameAndSlug, orgSchema, projectSchema, slug, timeZone } from '../schemas';
import { viewAuditEntry, viewOrg, viewProject } from '../view';
import { newestFirst, org, project, self } from './builders';

const tag = 'Organisations';
const atLeastOne = (body: object) => Object.values(body).some((value) => value !== undefined);
const oneField = { message: 'give at least one field to change' };
const cascade = z.object({ cascade: flag.optional().meta({ description: 'Delete what is inside as well.' }) });

export const orgOperations = [
  self({
    id: 'listOrgs', method: 'get', path: '/api/orgs', tag, summary: 'List my organisations', query: z.object(pageQuery),
    answer: z.object({ orgs: z.array(orgSchema), ...pageAnswer }),
    handle: async ({ deps, caller, query }) => {
      const { items, ...page } = await newestFirst(deps, ['orgs', caller.userId], query, {
        fetch: (after, limit) => listOrgs(deps.db.prisma, caller.userId, after, limit), idOf: (row) => row.id,
      });
      return { orgs: items.map((row) => viewOrg(row, row.role)), ...page };
    },
  }),
  self({
    id: 'createOrg', method: 'post', path: '/api/orgs', tag, summary: 'Create an organisation', description: 'With a project `default`.',
    body: nameAndSlug, answer: z.object({ org: orgSchema, project: projectSchema }), errors: ['slug_taken', 'plan_limit_reached'], idempotent: true,
    handle: ({ deps, caller, cause, body, transact }) => transact(async (tx) => {
      const made = await createOrg(deps, tx, { caller, cause }, body);
      return { org: viewOrg(made.org, 'owner'), project: viewProject(made.project) };
    }),
  }),
  org('org:read')({
    id: 'getOrg', method: 'get', path: '', tag, summary: 'Read an organisation', answer: z.object({ org: orgSchema }),
    handle: async ({ deps, caller }) => {
      const row = await getOrg(deps.db.prisma, caller.org.id);
      if (!row) throw notFound('Organisation');
      return { org: viewOrg(row, caller.role) };
    },
  }),
  org('org:update')({
    id: 'updateOrg', method: 'patch', path: '', tag, summary: 'Change an organisation', description: 'An old slug stays reserved for 90 days.',
    body: z.strictObject({ displayName: displayName.optional(), slug: slug.optional(), timeZone: timeZone.optional() }).refine(atLeastOne, oneField),
    answer: z.object({ org: orgSchema }), errors: ['slug_taken', 'invalid_state'],
    handle: ({ caller, cause, body, transact }) => transact(async (tx) => ({ org: viewOrg(await changeOrg(tx, { caller, cause }, body), caller.role) })),
  }),
  org('org:delete')({
    id: 'deleteOrg', method: 'delete', path: '', tag, summary: 'Delete an organisation', fresh: true, whileDeleting: true, status: 202, query: cascade,
    answer: z.object({ org: orgSchema, operation: operationSchema }), errors: ['conflict'],
    handle: async ({ deps, caller, cause, query, transact }) => transact(async (tx) => {
      const { org: row, operation } = await deleteOrg(deps, tx, { caller, cause }, query.cascade ?? false);
      return new Reply({ org: viewOrg(row, caller.role), operation: viewOperation(operation) }, { headers: { Location: `/v1/api/orgs/${row.slug}` } });
    }),
  }),
  org('org:read')({
    id: 'listProjects', method: 'get', path: '/projects', tag, summary: 'List projects', query: z.object(pageQuery),
    answer: z.object({ projects: z.array(projectSchema), ...pageAnswer }),
    handle: async ({ deps, caller, query }) => {
      const { items, ...page } = await newestFirst(deps, ['projects', caller.org.id], query, {
        fetch: (after, limit) => listProjects(deps.db.prisma, caller.org.id, after, limit), idOf: (row) => row.id,
      });
      return { projects: items.map(viewProject), ...page };
    },
  }),
  org('projects:manage')({
    id: 'createProject', method: 'post', path: '/projects', tag, summary: 'Create a project', body: nameAndSlug,
    answer: z.object({ project: projectSchema }), errors: ['slug_taken', 'plan_limit_reached', 'invalid_state'], idempotent: true,
    handle: ({ deps, caller, cause, body, transact }) => transact(async (tx) => ({ project: viewProject(await createProject(deps, tx, { caller, cause }, body)) })),
  }),
  project('org:read')({
    id: 'getProject', method: 'get', path: '', tag, summary: 'Read a project', answer: z.object({ project: projectSchema }),
    handle: async ({ deps, caller }) => {
      const row = await getProject(deps.db.prisma, caller.project.id);
      if (!row) throw notFound('Project');
      return { project: viewProject(row) };
    },
  }),
  project('projects:manage')({
    id: 'updateProject', method: 'patch', path: '', tag, summary: 'Change a project', description: 'An old slug stays reserved for 90 days.',
    body: z.strictObject({ displayName: displayName.optional(), slug: slug.optional() }).refine(atLeastOne, oneField),
    answer: z.object({ project: projectSchema }), errors: ['slug_taken', 'invalid_state'],
    handle: ({ caller, cause, body, transact }) => transact(async (tx) => ({ project: viewProject(await changeProject(tx, { caller, cause }, body)) })),
  }),
  project('projects:manage')({
    id: 'deleteProject', method: 'delete', path: '', tag, summary: 'Delete a project', whileDeleting: true, status: 202, query: cascade,
    answer: z.object({ project: projectSchema, operation: operationSchema }), errors: ['conflict'],
    handle: async ({ deps, caller, cause, query, transact }) => transact(async (tx) => {
      const { project: row, operation } = await deleteProject(deps, tx, { caller, cause }, query.cascade ?? false);
      const org = `/v1/api/orgs/${caller.org.slug}`;
      // The operation is followed under the organisation: the project's own address ends with the project.
      const headers = { Location: `${org}/projects/${row.slug}`, Link: `<${org}/operations/${operation.id}>; rel="monitor"` };
      return new Reply({ project: viewProject(row), operation: viewOperation(operation) }, { headers });
    }),
  }),
  org('audit:read')({
    id: 'listAuditEntries', method: 'get', path: '/audit', tag, summary: 'Read the audit log', query: auditQuery,
    answer: z.object({ auditEntries: z.array(auditEntrySchema), ...pageAnswer }),
    handle: async ({ deps, caller, query }) => {
      const { items, ...page } = await listAudit(deps, caller.org.id, query);
      return { auditEntries: items.map(viewAuditEntry), ...page };
    },
  }),
  org('audit:read')({
    id: 'verifyAuditLog', method: 'get', path: '/audit/verify', tag, summary: 'Recompute the chain of the audit log',
    answer: z.object({ verified: z.boolean(), entries: z.number().int(), headHash: z.string(), firstBadSeq: z.number().int().nullable() }),
    handle: async ({ deps, caller }) => {
      const verdict = await verifyChain(deps.db.prisma, caller.org.id);
      return { verified: verdict.firstBadSeq === null, ...verdict };
    },
  }),
];
