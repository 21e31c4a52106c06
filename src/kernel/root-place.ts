import type {
  AppNamespacePlace,
  AppPlace,
  Checked,
  EnvironmentPlace,
  NamespacePlace,
  OrganizationPlace,
  WorkspacePlace,
} from './checked-place.ts';
import { markChecked } from './mark-checked.ts';
import type { Permit } from './permit.ts';

type Parts = Partial<NamespacePlace & AppPlace & EnvironmentPlace>;

/**
 * The place of a root field, from its organization down to the part that the field declares. Root resolvers get it as
 * their parent.
 */
export class RootPlace {
  readonly #parts: Parts;
  readonly #asked: Permit | null;

  constructor(parts: Parts, asked: Permit | null) {
    this.#parts = parts;
    this.#asked = asked;
  }

  get organization(): Checked<OrganizationPlace> {
    return markChecked({ orgId: this.#part('orgId') }, this.#asked);
  }

  get workspace(): Checked<WorkspacePlace> {
    return markChecked(this.#workspace, this.#asked);
  }

  get namespace(): Checked<NamespacePlace> {
    return markChecked({ ...this.#workspace, namespaceId: this.#part('namespaceId') }, this.#asked);
  }

  get app(): Checked<AppPlace> {
    return markChecked({ ...this.#workspace, appId: this.#part('appId') }, this.#asked);
  }

  get appNamespace(): Checked<AppNamespacePlace> {
    const parts = { appId: this.#part('appId'), namespaceId: this.#part('namespaceId') };
    return markChecked({ ...this.#workspace, ...parts }, this.#asked);
  }

  get environment(): Checked<EnvironmentPlace> {
    return markChecked({ ...this.#workspace, environmentId: this.#part('environmentId') }, this.#asked);
  }

  get #workspace(): WorkspacePlace {
    return { orgId: this.#part('orgId'), workspaceId: this.#part('workspaceId') };
  }

  /** @throws Error for a part that the field does not declare */
  #part(name: keyof Parts): string {
    const id = this.#parts[name];
    if (id === undefined)
      throw new Error(`The field asks for nothing in a place with '${name}': say so in 'authorize'.`);
    return id;
  }
}
