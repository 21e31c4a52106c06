import type { ArtifactFragment } from '../../../rest/generated/documents.ts';
import type { Answer, Person } from '../../support/person.ts';
import type { RestBody } from '../../support/rest-body.ts';

/** An artifact as REST answers it. */
export type Artifact = RestBody<ArtifactFragment>;

/** A page of artifacts. */
export interface ArtifactPage {
  total: number;
  has_more: boolean;
  next_cursor: string | null;
  artifacts: Artifact[];
}

/** The versions of an artifact. */
export interface Versions {
  artifact_id: string;
  current_version: number;
  total: number;
  has_more: boolean;
  next_cursor: string | null;
  versions: Artifact[];
}

/** Where the artifacts of somebody's workspace are. */
export const shelfOf = ({ home }: Person): string => `${home}/namespaces/default/artifacts`;

/** Creates an artifact. @throws Error with the answer if it could not be created */
export async function newArtifact(person: Person, given: object = {}, shelf = shelfOf(person)): Promise<Artifact> {
  const { status, body } = await person.call<Artifact>('POST', shelf, { name: 'Plan', ...given });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return body;
}

/** Reads an artifact. */
export const getArtifact = (person: Person, id: string): Promise<Answer<Artifact>> =>
  person.call('GET', `${shelfOf(person)}/${id}`);

/** Changes an artifact. */
export const putArtifact = (person: Person, id: string, body: object): Promise<Answer<Artifact>> =>
  person.call('PUT', `${shelfOf(person)}/${id}`, body);

/** The versions of an artifact, newest first. */
export const versionsOf = async (person: Person, id: string, query = ''): Promise<Versions> =>
  (await person.call<Versions>('GET', `${shelfOf(person)}/${id}/versions${query}`)).body;
