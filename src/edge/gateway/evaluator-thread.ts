import { parentPort, workerData } from 'node:worker_threads';
import type { Evaluation } from '../../gateway/ports';
import { compilePolicy } from './compiled-policy';
import { factsOfDescribed } from './described-request';
import type { EvaluatorOptions, EvaluatorTask, FromThread } from './evaluator';
import { maskedMatch } from './mask';
import { judge } from './pipeline';
import { createRuleEngine } from './seclang/engine';
import { loadSets } from './seclang/sets';

/** The thread behind createPolicyEvaluator: loads the rule sets once, then judges what it is asked. Nothing is counted or kept. */
const given: unknown = workerData;
const { sets } = loadSets(isOptions(given) ? given : { rulesDir: '', crsDir: null });
const engine = createRuleEngine({ sets, elsewhere: null });

parentPort?.on('message', (task: EvaluatorTask) => {
  evaluate(task).then((evaluation) => say({ task: task.task, evaluation }), (error: unknown) => say({ task: task.task, fault: error instanceof Error ? error.message : 'not judged' }));
});
const loaded = (name: 'crs' | 'base') => ({ version: sets[name]?.version ?? null, rules: sets[name]?.descriptions ?? [] });
say({ ready: { crs: loaded('crs'), base: loaded('base') } });

async function evaluate({ zoneId, policy, request }: EvaluatorTask): Promise<Evaluation> {
  const compiled = compilePolicy(zoneId, 0, policy);
  const facts = factsOfDescribed(zoneId, request, Date.now());
  const begun = performance.now();
  const { decision } = await judge({ engine, limits: null, clearance: null, now: () => Date.now() }, compiled, facts, { explain: true });
  const durationMicros = Math.round((performance.now() - begun) * 1_000);
  const { outcome, wouldHave, steps, managed } = decision;
  return { outcome, wouldHave, steps, rules: managed ? managed.matches.map((match) => ({ ...match, matched: maskedMatch(match) })) : [], anomalyScore: managed?.score ?? null, durationMicros };
}

function say(message: FromThread): void {
  parentPort?.postMessage(message);
}

function isOptions(value: unknown): value is EvaluatorOptions {
  return typeof value === 'object' && value !== null && 'rulesDir' in value && 'crsDir' in value;
}
