import { html, Html } from '../core/html';
import { pageStyle } from './docs-style';
import type { JsonSchema } from './json-schema';
import type { OpenApiDocument, OperationObject, Parameter } from './openapi';

type Entry = { method: string; path: string; operation: OperationObject; id: string };

/**
 * The documentation as one page without script, made from the document alone. An operation's id stands inside its folded
 * part: a browser opens what a link leads into.
 */
export function documentationPage(document: OpenApiDocument): string {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods)
    .flatMap(([method, operation]) => (operation.operationId ? [{ method, path, operation, id: operation.operationId }] : [])));
  const byTag = document.tags.map(({ name }) => ({ name, entries: entries.filter(({ operation }) => operation.tags.includes(name)) }));
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Holdfast API</title><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>${new Html(pageStyle)}</style></head>
<body><nav><a href="#start">Holdfast API</a>${byTag.map((tag) => html`<h2>${tag.name}</h2><ul>${tag.entries.map(navItem)}</ul>`)}
<h2>Schemas</h2><ul>${Object.keys(document.components.schemas).map((name) => html`<li><a href="#schema-${name}">${name}</a></li>`)}</ul></nav>
<main>${introduction(document)}
${byTag.map((tag) => html`<section><h2>${tag.name}</h2>${tag.entries.map(entrySection)}</section>`)}
<section><h2>Schemas</h2>${Object.entries(document.components.schemas).map(([name, schema]) => html`<details id="schema-${name}" open><summary><code>${name}</code></summary><div>${schemaTable(schema)}</div></details>`)}</section>
</main></body></html>`.text;
}

function introduction({ info }: OpenApiDocument): Html {
  return html`<h1 id="start">Holdfast API ${info.version}</h1><p>${prose(info.description)}</p>
<p>Paths are below the base address <code>/v1</code>. The machine-readable form of this page is <a href="/v1/openapi.json">/v1/openapi.json</a> (OpenAPI 3.1).</p>
<h3>A first request</h3>
<pre><code>curl -c jar -H 'Content-Type: application/json' -d '{"email":"…","password":"…"}' http://localhost:3000/v1/api/auth/sign-in
curl -b jar http://localhost:3000/v1/api/orgs</code></pre>
<h3>Conventions</h3>
<table>
<tr><td>Sessions</td><td>Sign-in sets a cookie; management routes need nothing else. Requests from other sites are refused.</td></tr>
<tr><td>API keys</td><td><code>Authorization: Bearer &lt;key&gt;</code> on the routes that name a scope.</td></tr>
<tr><td>Lists</td><td><code>limit</code> is 1 to 100; pass <code>nextCursor</code> of a page as <code>cursor</code> of the next, while <code>hasMore</code> is true.</td></tr>
<tr><td>Accepted work</td><td>A 202 names an <code>operation</code>; <code>GET …/operations/:operationId?wait=30</code> answers when it has finished.</td></tr>
<tr><td>Repeating</td><td>With an <code>Idempotency-Key</code> header a POST that creates or sends may be repeated safely.</td></tr>
<tr><td>Limits</td><td>A 429 says in <code>Retry-After</code> when to try again.</td></tr>
</table>`;
}

function navItem({ method, operation, id }: Entry): Html {
  return html`<li><a href="#${id}"><span class="method ${method}">${method}</span>${operation.summary}</a></li>`;
}

function entrySection({ method, path, operation, id }: Entry): Html {
  const body = operation.requestBody;
  return html`<details><summary><span class="method ${method}">${method}</span><span class="path">${path}</span><span class="dim">${operation.summary}</span></summary><div id="${id}">
<p>${prose(operation.description ?? '')}</p><p class="dim">${callerText(operation)}</p>
${operation.parameters.length > 0 ? html`<h3>Parameters</h3><table>${operation.parameters.map(parameterRow)}</table>` : ''}
${body ? html`<h3>Body${body.required ? '' : ' (optional)'}</h3>${schemaTable(body.content['application/json'].schema)}` : ''}
${Object.entries(operation.responses).map(([status, response]) => status < '300'
    ? html`<h3>Answer ${status}</h3>${schemaTable(response.content['application/json'].schema)}<h3>Refusals</h3>` : html`<p><code>${status}</code> ${response.description}</p>`)}
</div></details>`;
}

function callerText(operation: OperationObject): string {
  const fresh = operation['x-fresh-session'] ? ' It must have given its password recently.' : '';
  if (operation['x-permission']) return `Session whose role includes ${operation['x-permission']}.${fresh}`;
  if (operation['x-scope']) return `API key with the scope ${operation['x-scope']}.`;
  const [scheme] = operation.security.flatMap((requirement) => Object.keys(requirement));
  if (scheme === 'session') return `Any session.${fresh}`;
  return scheme === 'signature' ? 'Signed by the provider.' : 'Open to everybody.';
}

function parameterRow({ name, in: where, required, description, schema }: Parameter): Html {
  return html`<tr><td><code>${name}</code></td><td><span class="type">${typeText(schema)}, ${where}${required ? ', required' : ''}</span> ${prose(description ?? '')}</td></tr>`;
}

/** Members of an object, nested ones inside their row; named schemas are links. */
function schemaTable(schema: JsonSchema): Html {
  const parts = asNodes(schema['allOf']).concat(asNodes(schema['anyOf']), asNodes(schema['oneOf']));
  if (parts.length > 0) return html`${parts.map((part, index) => html`${index > 0 ? html`<p class="dim">${schema['allOf'] ? 'and' : 'or'}</p>` : ''}${schemaTable(part)}`)}`;
  const properties = isNode(schema['properties']) ? Object.entries(schema['properties']) : [];
  if (properties.length === 0) return html`<p class="type">${typeText(schema)}</p>`;
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return html`<table>${properties.map(([name, member]) => isNode(member) ? memberRow(name, member, required.includes(name)) : '')}</table>`;
}

function memberRow(name: string, member: JsonSchema, required: boolean): Html {
  const inner = isNode(member['items']) ? member['items'] : member;
  const shown = [inner, ...asNodes(inner['anyOf'])].find((choice) => isNode(choice['properties']));
  const description = typeof member['description'] === 'string' ? prose(member['description']) : '';
  return html`<tr><td><code>${name}</code></td><td><span class="type">${typeText(member)}${required ? '' : ', optional'}</span> ${description}${shown ? schemaTable(shown) : ''}</td></tr>`;
}

function typeText(schema: JsonSchema): Html {
  const { $ref, type, items, format } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? '';
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  const choices = asNodes(schema['anyOf']).concat(asNodes(schema['oneOf']));
  if (choices.length > 0) return html`${choices.map((choice, index) => html`${index > 0 ? ' or ' : ''}${typeText(choice)}`)}`;
  if (Array.isArray(schema['enum'])) return html`${schema['enum'].map((value, index) => html`${index > 0 ? ' · ' : ''}<code>${String(value)}</code>`)}`;
  if ('const' in schema) return html`<code>${String(schema['const'])}</code>`;
  if (isNode(items)) return html`list of ${typeText(items)}`;
  const name = Array.isArray(type) ? type.join(' or ') : typeof type === 'string' ? type : 'any';
  return html`${name}${typeof format === 'string' ? ` (${format})` : ''}${boundsText(schema)}`;
}

function boundsText({ minimum, maximum, minLength, maxLength }: JsonSchema): string {
  const [low, high] = [minimum ?? minLength, maximum ?? maxLength].map((bound) => (typeof bound === 'number' && Number.isSafeInteger(bound) && Math.abs(bound) < Number.MAX_SAFE_INTEGER ? bound : null));
  const unit = minLength !== undefined || maxLength !== undefined ? ' characters' : '';
  if (low != null && high != null) return `, ${low} to ${high}${unit}`;
  return low != null ? `, at least ${low}${unit}` : high != null ? `, at most ${high}${unit}` : '';
}

/** Words between backquotes are code. */
function prose(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

function asNodes(value: unknown): JsonSchema[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function isNode(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

