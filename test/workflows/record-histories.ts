import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporal } from '@temporalio/proto';
import { withTemporal } from '../support/temporal';
import { withWorkflowLab } from '../support/workflow-lab';
import { fileOf, recordings } from './recordings';

/** `npm run histories:record`: not a test, but it needs the tests' servers. */
const lab = withWorkflowLab(withTemporal());
const dir = join(__dirname, 'histories');

test.each(recordings)('records $workflow $variant', async (recording) => {
  const file = join(dir, fileOf(recording));
  if (await access(file).then(() => true, () => false)) return;
  const { workflow, input, activities } = recording;
  const { workflowId } = await lab.run({ workflow, input, activities });
  await mkdir(dir, { recursive: true });
  await writeFile(file, withoutTraces(await lab.history(workflowId)));
});

/** The machine it was recorded on is nobody's business: names of hosts, processes and files go; replay does not look at them. */
function withoutTraces(bytes: Uint8Array): Uint8Array {
  const history = temporal.api.history.v1.History.decode(bytes);
  blank(history.events);
  return temporal.api.history.v1.History.encode(history).finish();
}

function blank(value: unknown): void {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === 'identity' || key === 'stackTrace') Reflect.set(value, key, '');
    else if (key === 'taskQueue') Reflect.set(value, key, { name: 'recorded' });
    else blank(inner);
  }
}
