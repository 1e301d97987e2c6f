import { readFileSync } from 'node:fs';
import Ajv from 'ajv/dist/2020';
import type { OpenApiDocument } from '../../src/http/openapi';

/** What the published schema of OpenAPI 3.1 finds wrong with a document. */
export function faultsOf(document: unknown): unknown[] {
  const schema: unknown = JSON.parse(readFileSync(require.resolve('@seriousme/openapi-schema-validator/schemas/v3.1/schema.json'), 'utf8'));
  if (typeof schema !== 'object' || schema === null) throw new Error('no schema');
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  return validate(document) ? [] : validate.errors ?? [];
}

/** References of a document that lead nowhere, and components that are no JSON Schema. */
export function brokenSchemas(document: OpenApiDocument): string[] {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference = '']) => reference);
  const ajv = new Ajv({ strict: false });
  const invalid = Object.entries(document.components.schemas).filter(([, schema]) => !ajv.validateSchema(schema)).map(([name]) => name);
  return [...references.filter((reference) => lookUp(document, reference) === undefined), ...invalid];
}

function lookUp(root: object, reference: string): unknown {
  return reference.slice(2).split('/').reduce<unknown>((value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined), root);
}
