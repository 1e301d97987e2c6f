import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { channelOptions, startOptions } from './options';

/** A client that connects when it is first used and never waits for a server that is down. */
export interface Temporal {
  readonly client: Client;
  readonly connection: Connection;
  /** Runs calls that end within `deadlineMs`; they reject with a gRPC status, DEADLINE_EXCEEDED at the latest. */
  within<T>(deadlineMs: number, call: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Opens no socket yet: a process starts also while Temporal is down. */
export function openTemporal(options: { address: string; namespace: string; identity: string }): Temporal {
  const connection = Connection.lazy({
    address: options.address,
    channelArgs: channelOptions,
    interceptors: [makeGrpcRetryInterceptor(defaultGrpcRetryOptions({
      maxAttempts: startOptions.attemptsMax, initialIntervalMs: () => startOptions.retryAfterMs,
    }))],
  });
  return {
    connection,
    client: new Client({ connection, namespace: options.namespace, identity: options.identity }),
    within: (deadlineMs, call) => connection.withDeadline(Date.now() + deadlineMs, call),
    close: () => connection.close(),
  };
}
