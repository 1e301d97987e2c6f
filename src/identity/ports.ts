/** A mail as plain text; the adapter makes bytes of it. `id` is ours: the Message-ID derives from it. */
export type AccountMailMessage = { id: string; to: string; subject: string; text: string };

/** How account mail leaves the house. Twice the same id is one mail with the same Message-ID. */
export interface AccountMailer {
  /** Errors: AppError for a refusal that will not change (a bad recipient); everything else may be tried again. */
  send(message: AccountMailMessage): Promise<void>;
}
