//! Sandboxes on Kubernetes.

use super::{Part, Section, Var};
use crate::kind::Kind;

const fn v(name: &'static str, kind: Kind) -> Var {
    Var::new(name, Section::SandboxKubernetes, super::sandbox::SPAWNER, kind).not_yet(Part::Sandboxes)
}

pub(super) const SANDBOX_KUBERNETES: &[Var] = &[
    v("SANDBOX_K8S_NAMESPACE", Kind::Label).value("tale-sandbox").help(
        "Namespace of session Pods.",
        "Namespace der Sitzungs-Pods.",
        "Namespace des Pods de session.",
    ),
    v("SANDBOX_K8S_WORKSPACE_SIZE_LIMIT", Kind::Quantity).value("4Gi").help(
        "Size of each workspace claim.",
        "Größe jedes Arbeitsbereich-Claims.",
        "Taille de chaque claim d’espace de travail.",
    ),
    v("SANDBOX_K8S_CACHE_STORAGECLASS", Kind::Word)
        .derived("the cluster's", "die des Clusters", "celle du cluster")
        .help(
            "StorageClass of workspace claims.",
            "StorageClass der Arbeitsbereich-Claims.",
            "StorageClass des claims d’espace de travail.",
        ),
    v("SANDBOX_K8S_DOCKER_STORAGE_SIZE_LIMIT", Kind::Quantity).value("20Gi").help(
        "Size of a session's inner image store.",
        "Größe des inneren Image-Speichers einer Sitzung.",
        "Taille du stockage d’images interne d’une session.",
    ),
    v("SANDBOX_K8S_EPHEMERAL_STORAGE_REQUEST", Kind::Quantity).value("256Mi").help(
        "Node disk that a session Pod requests.",
        "Node-Speicherplatz, den ein Sitzungs-Pod anfordert.",
        "Disque du nœud que demande un Pod de session.",
    ),
    v("SANDBOX_K8S_EPHEMERAL_STORAGE_LIMIT", Kind::Quantity).value("2Gi").help(
        "Node disk that a session Pod may use.",
        "Node-Speicherplatz, den ein Sitzungs-Pod benutzen darf.",
        "Disque du nœud qu’un Pod de session peut utiliser.",
    ),
    v("SANDBOX_K8S_NODE_SELECTOR", Kind::JsonObject).help(
        "Labels that a node must have to run session Pods.",
        "Labels, die ein Node für Sitzungs-Pods haben muss.",
        "Labels qu’un nœud doit porter pour exécuter des Pods de session.",
    ),
    v("SANDBOX_K8S_TOLERATIONS", Kind::JsonArray).help(
        "Taints that session Pods tolerate.",
        "Taints, die Sitzungs-Pods dulden.",
        "Taints que tolèrent les Pods de session.",
    ),
    v("SANDBOX_K8S_PRIORITY_CLASS", Kind::Word).help(
        "Priority of session Pods.",
        "Priorität der Sitzungs-Pods.",
        "Priorité des Pods de session.",
    ),
    v("SANDBOX_K8S_SERVER", Kind::Url(&["https", "http"]))
        .derived("the cluster the spawner is in", "der Cluster des Spawners", "le cluster du spawner")
        .help(
            "API server of a spawner outside the cluster, for development.",
            "API-Server eines Spawners außerhalb des Clusters, für die Entwicklung.",
            "Serveur d’API d’un spawner hors du cluster, pour le développement.",
        ),
    v("SANDBOX_K8S_TOKEN", Kind::Secret { min: 1 }).secret().help(
        "Token of a spawner outside the cluster.",
        "Token eines Spawners außerhalb des Clusters.",
        "Jeton d’un spawner hors du cluster.",
    ),
    v("SANDBOX_K8S_CAFILE", Kind::File).help(
        "Certificate authority of that API server.",
        "Zertifizierungsstelle dieses API-Servers.",
        "Autorité de certification de ce serveur d’API.",
    ),
    v("SANDBOX_K8S_CPU_REQUEST", Kind::Quantity).derived("by profile", "nach Profil", "selon le profil").help(
        "Processors that every session Pod requests.",
        "Prozessoren, die jeder Sitzungs-Pod anfordert.",
        "Processeurs que demande chaque Pod de session.",
    ),
    v("SANDBOX_K8S_MEMORY_REQUEST", Kind::Quantity).derived("by profile", "nach Profil", "selon le profil").help(
        "Memory that every session Pod requests.",
        "Arbeitsspeicher, den jeder Sitzungs-Pod anfordert.",
        "Mémoire que demande chaque Pod de session.",
    ),
];
