/** What the supervisor tells the person at the terminal. A closed terminal must not end it. */
export function say(text: string): void {
  if (process.stdout.writable) process.stdout.write(`${text}\n`);
}

/** Runs `work`; names it once it has taken a second, again every five, and says the seconds at its end. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const seconds = () => ((performance.now() - started) / 1000).toFixed(1);
  let said = false;
  const first = setTimeout(() => {
    said = true;
    say(`${name} …`);
  }, 1_000);
  const again = setInterval(() => say(`  … ${name}: ${seconds()} s`), 5_000);
  try {
    const result = await work();
    if (said) say(`${name}: done in ${seconds()} s`);
    return result;
  } finally {
    clearTimeout(first);
    clearInterval(again);
  }
}
