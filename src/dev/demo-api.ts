import { z } from 'zod';

export type DemoProject = { orgSlug: string; projectSlug: string };
export type DemoLogin = { email: string; password: string };
/** Asks below the demo project's address. Errors: any answer but 2xx, with its message. */
export type AskDemo = (method: string, path: string, json?: unknown) => Promise<unknown>;

const messageShape = z.object({ message: z.string() }).catch({ message: '' });

/** Signed in as the demo project's owner. Errors: whoever it is, is not let in. */
export async function askAsDemoOwner(apiUrl: string, { email, password, orgSlug, projectSlug }: DemoProject & DemoLogin): Promise<AskDemo> {
  const ask = async (method: string, path: string, json: unknown, cookie: string): Promise<Response> => {
    const response = await fetch(`${apiUrl}/v1/api${path}`, {
      method, signal: AbortSignal.timeout(20_000), headers: { ...(cookie ? { cookie } : {}), ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    if (response.ok) return response;
    throw new Error(`${method} ${path} was answered ${response.status}: ${messageShape.parse(await response.json()).message}`);
  };
  const signedIn = await ask('POST', '/auth/sign-in', { email, password }, '');
  const cookie = signedIn.headers.getSetCookie().map((text) => text.split(';', 1)[0] ?? '').join('; ');
  return async (method, path, json) => (await ask(method, `/orgs/${orgSlug}/projects/${projectSlug}${path}`, json, cookie)).json();
}
