import { createHash } from 'node:crypto';
import type { Express } from 'express';
import { documentationPage } from './docs-page';
import { pageStyle } from './docs-style';
import { openApiDocument } from './openapi';
import type { Described } from './possible-errors';
import { servePage } from './server';

/**
 * Serves the OpenAPI document at `/v1/openapi.json` and the page made from it at `/docs`, each with and without the version.
 * Both are made once. The page has no script and loads nothing: its one style sheet is named in the policy by its hash.
 */
export function documentation(operations: readonly Described[]): (app: Express) => void {
  const document = openApiDocument(operations);
  const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(pageStyle).digest('base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  const page = documentationPage(document);
  const json = JSON.stringify(document);
  return (app) => {
    servePage(app, ['/v1/openapi.json', '/openapi.json'], (_, response) => {
      response.setHeader('Content-Type', 'application/json; charset=utf-8').end(json);
    });
    servePage(app, ['/docs', '/v1/docs'], (_, response) => {
      response.setHeader('Content-Security-Policy', policy).setHeader('Content-Type', 'text/html; charset=utf-8').end(page);
    });
  };
}
