import { ApplicationFailure } from '@temporalio/common';
import type { Activities, Interference, RunEnd, WorkflowLab } from './workflow-lab';

/** What is done to a run at one of its steps. */
export const torments = ['refused before its effect', 'refused after its effect', 'answer lost once', 'run twice', 'cancelled during it', 'refused, every undo run twice'] as const;
export type Torment = (typeof torments)[number];

/** A fresh world for one run, and what must hold in it afterwards. */
export interface World {
  input: unknown;
  activities: Activities;
  /** Throws when something is left that should not be, or missing that should be there. */
  verify(end: RunEnd, what: { torment: Torment | null; step: string | null }): Promise<void>;
}

export interface Scenario {
  workflow: string;
  begin(): Promise<World>;
  /** Steps after which nothing may be refused for good, because they are tried without end (marks, deletes): they are only repeated. */
  withoutEnd?: readonly string[];
}

/**
 * Runs the workflow once undisturbed, then once per step and torment (an attempt after a lost answer is a call of its own), each in a world of its own, and has every world
 * verified. Returns the steps of the undisturbed run, so that a suite can compare them with the workflow's step table.
 * Errors: one that names every run whose world was not right.
 */
export async function torture(lab: WorkflowLab, scenario: Scenario): Promise<string[]> {
  const faults: Error[] = [];
  const undisturbed = await once(lab, scenario, null, faults);
  for (const [index, step] of undisturbed.calls.entries()) {
    for (const torment of torments) {
      if (scenario.withoutEnd?.includes(step) && torment.startsWith('refused')) continue;
      await once(lab, scenario, { torment, index, step }, faults);
    }
  }
  if (faults.length > 0) throw new AggregateError(faults, faults.map((fault) => fault.message).join('\n'));
  return undisturbed.calls;
}

type Harm = { torment: Torment; index: number; step: string };

async function once(lab: WorkflowLab, scenario: Scenario, harm: Harm | null, faults: Error[]): Promise<RunEnd> {
  const world = await scenario.begin();
  const interfere = harm ? { interfere: interference(harm.torment, harm.index) } : {};
  const end = await lab.run({ workflow: scenario.workflow, input: world.input, activities: world.activities, ...interfere });
  try {
    await world.verify(end, { torment: harm?.torment ?? null, step: harm?.step ?? null });
  } catch (error) {
    const what = harm ? `${harm.step} ${harm.torment}` : 'undisturbed';
    faults.push(new Error(`${scenario.workflow}, ${what} (called: ${end.calls.join(', ')}; ended ${end.end} ${end.code ?? ''}): ${error instanceof Error ? error.message : String(error)}`, { cause: error }));
  }
  return end;
}

const refusal = () => ApplicationFailure.nonRetryable('injected', 'backend_error');

function interference(torment: Torment, at: number): Interference {
  return async ({ index }, run, { cancel }) => {
    if (index !== at) return index > at && torment === 'refused, every undo run twice' ? twice(run) : run();
    switch (torment) {
      case 'refused before its effect':
      case 'refused, every undo run twice':
        throw refusal();
      case 'refused after its effect':
        await run();
        throw refusal();
      case 'answer lost once':
        await run();
        throw ApplicationFailure.retryable('injected', 'backend_error');
      case 'run twice':
        return twice(run);
      case 'cancelled during it':
        await cancel();
        return run();
    }
  };
}

async function twice(run: () => Promise<unknown>): Promise<unknown> {
  await run();
  return run();
}
