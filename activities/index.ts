import { createSystemActivities, type SystemActivityDeps } from './system';

export type ActivityDeps = SystemActivityDeps;

/** Every activity of every product; a worker registers them all, its queues decide which it is asked for. Names are public. */
export function createActivities(deps: ActivityDeps) {
  return {
    ...createSystemActivities(deps),
  };
}
