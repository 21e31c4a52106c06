import { ArtifactService } from '../knowledge/artifacts/artifact.service.ts';
import { ArtifactRemoval } from '../knowledge/artifacts/artifact-removal.ts';
import { DeletedArtifactService } from '../knowledge/artifacts/deleted-artifact.service.ts';
import { EntityService } from '../knowledge/entities/entity.service.ts';
import { KnowledgeGraphRemoval } from '../knowledge/entities/knowledge-graph-removal.ts';
import { DownloadService } from '../knowledge/files/download.service.ts';
import { DownloadLinks } from '../knowledge/files/download-links.ts';
import { FileService } from '../knowledge/files/file.service.ts';
import { LinkCaller } from '../knowledge/files/link-caller.ts';
import { LinkKeys } from '../knowledge/files/link-keys.ts';
import { ResultFiles } from '../knowledge/files/result-files.ts';
import { UploadService } from '../knowledge/files/upload.service.ts';
import { UploadPieces } from '../knowledge/files/upload-pieces.ts';
import { UploadTickets } from '../knowledge/files/upload-tickets.ts';
import { ArtifactIndexer } from '../knowledge/indexing/artifact-indexer.ts';
import { ArtifactSearch } from '../knowledge/indexing/artifact-search.ts';
import { SearchScopes } from '../knowledge/indexing/search-scopes.ts';
import { TextExtraction } from '../knowledge/indexing/text/text-extraction.ts';
import { TextRanking } from '../knowledge/indexing/text-ranking.ts';
import { ArtifactEmbedder } from '../knowledge/indexing/vectors/artifact-embedder.ts';
import { NearestArtifacts } from '../knowledge/indexing/vectors/nearest-artifacts.ts';
import { MemoryService } from '../knowledge/memories/memory.service.ts';
import { SourceService } from '../knowledge/sources/source.service.ts';
import { ThreadService } from '../knowledge/threads/thread.service.ts';
import type { Ground } from './ground.ts';
import type { Models } from './models.ts';
import type { Tenancy } from './tenancy.ts';

export type Knowledge = ReturnType<typeof createKnowledge>;

/** Threads, artifacts with their files and search, sources, and the knowledge graph. */
export function createKnowledge(ground: Ground, { storageBudget: storageLimits }: Tenancy, models: Models) {
  const { config, deps, appSecret, publicUrl, sealFor, open, closed } = ground;
  const { sql, changes, access, slowReads } = deps;
  const { storage } = closed;
  const { embeddings: embedder } = models.closed;
  const { maxUploadBytes } = config;
  const extraction = new TextExtraction(ground.extraction);
  const vectors = new ArtifactEmbedder({ sql, changes, embedder });
  const indexing = new ArtifactIndexer({ sql, changes, storage, extraction, language: config.searchLanguage, vectors });
  const artifacts = new ArtifactService({ ...deps, indexing, storageLimits });
  const threads = new ThreadService(deps);
  const files = new FileService({ sql, storage, storageLimits, maxUploadBytes });
  const pieces = new UploadPieces({ sql, files, maxUploadBytes });
  const tickets = new UploadTickets({ seal: sealFor('upload ticket'), publicUrl });
  const linkCaller = new LinkCaller({ sql, access });
  const keys = new LinkKeys(appSecret, config.formerAppSecrets, 'download link');
  const links = new DownloadLinks({ keys, publicUrl });
  return {
    open: {
      files,
      uploads: new UploadService({ files, pieces, artifacts, tickets, maxUploadBytes }),
      downloads: new DownloadService({ sql, storage, links, linkCaller }),
      threads,
      artifacts,
      deletedArtifacts: new DeletedArtifactService({ ...deps, artifacts, indexing }),
      artifactSearch: new ArtifactSearch({
        artifacts,
        threads,
        scopes: new SearchScopes(sql, access),
        words: new TextRanking(slowReads),
        vectors: new NearestArtifacts({ reads: slowReads, embedder, onFault: open.onFault }),
      }),
      sources: new SourceService(deps),
      entities: new EntityService(deps),
      memories: new MemoryService(deps),
    },
    closed: {
      uploadPieces: pieces,
      uploadTickets: tickets,
      linkCaller,
      resultFiles: new ResultFiles({ sql, storage, files }),
      textExtraction: extraction,
      artifactIndexer: indexing,
      artifactEmbedder: vectors,
      artifactRemoval: new ArtifactRemoval(sql),
      knowledgeGraphRemoval: new KnowledgeGraphRemoval(sql),
    },
  };
}
