export type SystemActivities = {
  reportFailedUndo(input: { operationId: string; step: string; code: string }): Promise<void>;
};
