import { roles, type Role, type Scope } from '../core/caller';

/** Which role a permission starts at (contract identity.md §4.1). Ranks rise: what a member may do, an admin may too. */
export const permissionFrom = {
  'org:read': 'viewer', 'mail:read': 'viewer', 'dns:read': 'viewer', 'postgres:read': 'viewer', 'billing:read': 'viewer',
  'mail:write': 'member', 'mail:keys': 'member', 'dns:write': 'member',
  'postgres:create': 'member', 'postgres:manage': 'member', 'postgres:credentials': 'member',
  'mail:delete': 'admin', 'postgres:delete': 'admin', 'dns:zones': 'admin', 'dns:policy': 'admin',
  'org:update': 'admin', 'projects:manage': 'admin', 'members:manage': 'admin', 'audit:read': 'admin',
  'billing:invoices': 'admin', 'billing:plans': 'admin',
  'billing:manage': 'owner', 'org:delete': 'owner',
} as const satisfies Record<string, Role>;

export type Permission = keyof typeof permissionFrom;

/** The permission somebody must hold to hand out a scope (contract mail.md §4.3). */
export const permissionOfScope = {
  'mail:send': 'mail:write', 'mail:suppressions': 'mail:write', 'mail:read': 'mail:read', 'dns:read': 'dns:read',
} as const satisfies Record<Scope, Permission>;

export function rank(role: Role): number {
  return roles.indexOf(role);
}

export function may(role: Role, permission: Permission): boolean {
  return rank(role) >= rank(permissionFrom[permission]);
}
