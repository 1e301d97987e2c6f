// Steps of the set-up as a person sees them: what is being done when it takes over a second, and how long it took.
import { spawn } from 'node:child_process';

export const say = (text) => process.stdout.write(`${text}\n`);

/** Runs `work`; says its name once it has taken a second, again every five, and the seconds at its end. */
export async function step(name, work) {
  const started = Date.now();
  const elapsed = () => ((Date.now() - started) / 1000).toFixed(1);
  let said = false;
  const first = setTimeout(() => { said = true; say(`${name} …`); }, 1_000);
  const again = setInterval(() => say(`  … ${name}: ${Math.round((Date.now() - started) / 1000)} s`), 5_000);
  try {
    const result = await work();
    if (said) say(`${name}: done in ${elapsed()} s`);
    return result;
  } catch (error) {
    say(`${name}: failed after ${elapsed()} s`);
    throw error;
  } finally {
    clearTimeout(first);
    clearInterval(again);
  }
}

/** Runs a program to its end. `show`: its output goes straight to the terminal; otherwise it is returned. */
export function run(command, args, { env = {}, show = false, cwd } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', ...(show ? ['inherit', 'inherit'] : ['pipe', 'pipe'])] });
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (text) => { output += text; });
    child.stderr?.setEncoding('utf8').on('data', (text) => { output += text; });
    child.once('error', reject).once('close', (code, signal) => resolve({ ok: code === 0, code, signal, output }));
  });
}

/** The same, where anything but success is an error that shows the output, or of a long one its beginning and end. */
export async function mustRun(command, args, options) {
  const result = await run(command, args, options);
  if (!result.ok) throw new Error(`${[command, ...args].join(' ')} ended with ${result.code ?? result.signal}\n${shortened(result.output.trimEnd().split('\n'))}`);
  return result.output;
}

function shortened(lines) {
  return (lines.length > 60 ? [...lines.slice(0, 30), `… ${lines.length - 60} lines …`, ...lines.slice(-30)] : lines).join('\n');
}
