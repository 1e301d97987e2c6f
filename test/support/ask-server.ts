/** Asks the run's servers (servers.ts) for one of theirs; the first to ask waits until it is up. */
export async function askServer(name: 'database' | 'temporal'): Promise<string> {
  const origin = process.env['HOLDFAST_TEST_SERVERS'];
  if (!origin) throw new Error('The run of jest has no servers: its globalSetup did not run.');
  const response = await fetch(`${origin}/${name}`, { headers: { connection: 'close' } });
  const text = await response.text();
  if (!response.ok) throw new Error(`The test ${name} did not start: ${text}`);
  return text;
}
