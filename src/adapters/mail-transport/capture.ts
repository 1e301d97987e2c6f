import { setTimeout as pause } from 'node:timers/promises';
import type { MailTransport, TransportJob, TransportResult } from '../../mail/ports';
import { bounceReport, complaintReport } from '../../mail/rules/simulated-reports';
import { simulationOf, type Simulation } from '../../mail/rules/simulation';

export interface CaptureOptions {
  /** Keeps the bytes, and whether this recipient took them. Safe twice. */
  readonly keep: (job: TransportJob, accepted: boolean) => Promise<void>;
  /** Has these bytes reach the intake after a while; once per recipient and kind. */
  readonly report: (job: TransportJob, report: { kind: 'dsn' | 'arf'; envelopeTo: string; mime: Buffer; delaySeconds: number }) => Promise<void>;
  /** Where complaints go. */
  readonly feedbackAddress: string;
  readonly now: () => Date;
}

const reportDelaySeconds = 1;
const exchanger = { mxHost: 'capture' };
const accepted: TransportResult = { outcome: 'accepted', code: 250, enhancedCode: '2.0.0', text: 'Captured', ...exchanger };

/** Sends nothing: keeps the message to be read, and answers as the mail exchanger of the address would by its local part. */
export class CaptureTransport implements MailTransport {
  readonly name = 'capture';
  readonly acceptedMeans = 'delivered';

  constructor(private readonly options: CaptureOptions) {}

  async send(job: TransportJob, signal: AbortSignal): Promise<TransportResult> {
    const simulation = simulationOf(job.recipient);
    if (simulation.kind === 'slow' && !(await waited(simulation.seconds, signal))) return { outcome: 'deferred', text: 'no answer in time', ...exchanger };
    const result = answer(simulation, job.attempt);
    await this.options.keep(job, result.outcome === 'accepted');
    if (result.outcome === 'accepted') await this.announce(simulation, job);
    return result;
  }

  async close(): Promise<void> {
    // nothing is open
  }

  private async announce(simulation: Simulation, job: TransportJob): Promise<void> {
    const reported = { envelopeFrom: job.envelopeFrom, recipient: job.recipient, mime: job.mime, at: this.options.now() };
    const delaySeconds = reportDelaySeconds;
    if (simulation.kind === 'late-bounce') {
      await this.options.report(job, { kind: 'dsn', envelopeTo: job.envelopeFrom, mime: bounceReport(reported, simulation.enhancedCode), delaySeconds });
    }
    if (simulation.kind === 'complain') {
      const { feedbackAddress } = this.options;
      await this.options.report(job, { kind: 'arf', envelopeTo: feedbackAddress, mime: complaintReport(reported, feedbackAddress), delaySeconds });
    }
  }
}

function answer(simulation: Simulation, attempt: number): TransportResult {
  switch (simulation.kind) {
    case 'bounce': return { outcome: 'refused', code: 550, enhancedCode: simulation.enhancedCode, text: 'Simulated bounce', ...exchanger };
    case 'defer': return attempt <= simulation.times ? { outcome: 'deferred', code: 451, enhancedCode: '4.7.1', text: 'Simulated greylisting', ...exchanger } : accepted;
    case 'drop': return attempt === 1 ? { outcome: 'interrupted', text: 'the connection was closed after the final dot', ...exchanger } : accepted;
    case 'accept': case 'complain': case 'late-bounce': case 'slow': return accepted;
  }
}

async function waited(seconds: number, signal: AbortSignal): Promise<boolean> {
  return pause(seconds * 1_000, true, { signal }).catch(() => false);
}
