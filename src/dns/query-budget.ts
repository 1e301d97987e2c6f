import type { DnsResolver, QueryBudget } from './ports';

/** The same resolver for one check or scan: all its questions together send no more packets than the budget has. */
export function withinBudget(resolver: DnsResolver, budget: QueryBudget): DnsResolver {
  return {
    resolve: (name, type, options) => resolver.resolve(name, type, { ...options, budget }),
    delegation: (name, options) => resolver.delegation(name, { ...options, budget }),
    askServer: (server, name, type, options) => resolver.askServer(server, name, type, { ...options, budget }),
    ...(resolver.transferZone && { transferZone: resolver.transferZone.bind(resolver) }),
  };
}
