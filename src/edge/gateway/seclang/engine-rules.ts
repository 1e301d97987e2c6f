/** Rules about what the engine itself refuses to read (contract gateway.md §4.4); they stand before every rule set. */
const critical = (level: number, tag: string) => `phase:2,block,t:none,severity:'CRITICAL',tag:'paranoia-level/${level}',tag:'engine',tag:'${tag}',setvar:'tx.anomaly_score_pl${level}=+5'`;

export const engineRules = `
SecRule &ENGINE_EXCESS:arguments "@gt 0" "id:9500001,msg:'More than 1,000 arguments',${critical(1, 'attack-protocol')}"
SecRule &ENGINE_EXCESS:parts "@gt 0" "id:9500002,msg:'More than 64 parts in a multipart body, or 16 header lines in a part',${critical(1, 'attack-protocol')}"
SecRule &ENGINE_EXCESS:depth "@gt 0" "id:9500003,msg:'The body is nested more than 64 levels deep',${critical(1, 'attack-protocol')}"
SecRule &ENGINE_EXCESS:decoding "@gt 0" "id:9500004,msg:'The compressed body grows more than a hundredfold',${critical(1, 'attack-protocol')}"
SecRule REQBODY_ERROR "@eq 1" "id:9500005,msg:'The request body is not what its Content-Type says',${critical(1, 'attack-protocol')}"
SecRule MULTIPART_STRICT_ERROR "@eq 1" "id:9500006,msg:'The multipart body can be read in more than one way',${critical(1, 'attack-multipart-header')}"
`;
