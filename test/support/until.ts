/** Waits for a condition, up to 25 seconds: it may depend on work at the lowest priority of a busy machine. */
export async function until(condition: () => boolean | Promise<boolean>, what = 'the condition'): Promise<void> {
  const end = performance.now() + 25_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`Waited in vain for ${what}.`);
    await new Promise((done) => setTimeout(done, 10));
  }
}
