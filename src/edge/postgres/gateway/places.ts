import { Refusal } from './refusal';

const waitingMax = 100;
const waitMs = 10_000;

type Waiting = { give(): void; dismiss(error: Refusal): void };

/** Places of one service's sessions: beyond the plan's, connections wait in line. */
export class Places {
  private taken = 0;
  private readonly line: Waiting[] = [];

  /** `max`: how many there are now; a change of plan changes it. */
  constructor(private readonly max: () => number) {}

  /** A place; the answer gives it back. Errors: Refusal 53300 when the line is too long or too slow; that of `dismiss`; an Error when the client leaves. */
  async take(gone: AbortSignal): Promise<() => void> {
    if (this.line.length === 0 && this.taken < this.max()) this.taken += 1;
    else await this.wait(gone);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.taken -= 1;
      this.serve();
    };
  }

  get isEmpty(): boolean {
    return this.taken === 0 && this.line.length === 0;
  }

  /** Whoever is first in line gets what is free: after a session ended, or the plan grew. */
  serve(): void {
    while (this.line.length > 0 && this.taken < this.max()) {
      this.taken += 1;
      this.line[0]?.give();
    }
  }

  /** Nobody in line will be served any more. */
  dismiss(error: Refusal): void {
    for (const waiting of [...this.line]) waiting.dismiss(error);
  }

  private wait(gone: AbortSignal): Promise<void> {
    if (this.line.length >= waitingMax) throw new Refusal('53300', 'Too many connections are waiting for this service.');
    return new Promise((resolve, reject) => {
      const settled = (settle: () => void) => {
        clearTimeout(timer);
        gone.removeEventListener('abort', onGone);
        this.line.splice(this.line.indexOf(waiting), 1);
        settle();
      };
      const waiting: Waiting = { give: () => settled(resolve), dismiss: (error) => settled(() => reject(error)) };
      const timer = setTimeout(() => waiting.dismiss(new Refusal('53300', `All ${this.max()} connections of this service's plan are in use.`)), waitMs);
      const onGone = () => settled(() => reject(new Error('the client left the line')));
      gone.addEventListener('abort', onGone);
      this.line.push(waiting);
    });
  }
}
