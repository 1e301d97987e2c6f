import type { Listener } from './listen';

type LoopOptions = {
  listener: Listener;
  /** Each notification of it begins a round at once. */
  channel: string;
  /** One round; how long to rest after it, in milliseconds. A fault rests for `faultMs`. */
  round(): Promise<number>;
  onFault(error: unknown): void;
};

const faultMs = 1_000;

/** Rounds one after the other, with rests that a notification ends. `stop` waits for the round that runs. */
export function startWokenLoop({ listener, channel, round, onFault }: LoopOptions): { stop(): Promise<void> } {
  let stopped = false;
  let heard = false;
  let wake: () => void = () => undefined;
  const unlisten = listener.listen(channel, () => {
    heard = true;
    wake();
  });
  const rest = (ms: number): Promise<void> => new Promise((resolve) => {
    const timer = setTimeout(resolve, heard || stopped ? 0 : ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  const running = (async () => {
    while (!stopped) {
      heard = false;
      const ms = await round().catch((error: unknown) => {
        onFault(error);
        return faultMs;
      });
      await rest(ms);
    }
  })();
  return {
    async stop() {
      stopped = true;
      unlisten();
      wake();
      await running;
    },
  };
}
