declare module 'tr46' {
  type Options = {
    checkHyphens?: boolean; checkBidi?: boolean; checkJoiners?: boolean; useSTD3ASCIIRules?: boolean;
    verifyDNSLength?: boolean; transitionalProcessing?: boolean; ignoreInvalidPunycode?: boolean;
  };
  /** Null when a rule asked for is broken. */
  export function toASCII(domain: string, options?: Options): string | null;
  export function toUnicode(domain: string, options?: Options): { domain: string; error: boolean };
}
