//! A repository over SSH, cloned by an agent in a session of the real image through the real way out.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::place::{Place, workspace};

const SITE: &str = "93.184.216.34";

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn ip(line: &str) {
    run("ip", &line.split(' ').collect::<Vec<_>>());
}

/// The network of sessions ── the proxy's ── one outside that has a public address.
struct Networks {
    proxy: String,
    outside: String,
    /// The proxy's address in the network of sessions, far from those that the engine gives out.
    door: String,
    started: Vec<Child>,
}

impl Networks {
    fn new(place: &Place) -> Self {
        let (proxy, outside) = (format!("{}-p", place.instance), format!("{}-o", place.instance));
        let [a, b] = ["a", "b"].map(|end| format!("tg{}{end}", std::process::id()));
        place.docker(&["network", "create", "--internal", &place.instance]);
        let network = place.said(&[
            "network",
            "inspect",
            "--format",
            "{{.Id}} {{(index .IPAM.Config 0).Subnet}}",
            &place.instance,
        ]);
        let (id, subnet) = network.split_once(' ').unwrap();
        let (base, length) = subnet.split_once('/').unwrap();
        let door = format!("{}.200", base.rsplit_once('.').unwrap().0);
        let made = Self { proxy, outside, door, started: Vec::new() };
        let (proxy, outside) = (&made.proxy, &made.outside);
        for name in [proxy, outside] {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        ip(&format!("link add {a} type veth peer name s0 netns {proxy}"));
        ip(&format!("link set {a} master br-{} up", &id[..12]));
        ip(&format!("link add {b} netns {proxy} type veth peer name o0 netns {outside}"));
        ip(&format!("-n {proxy} address add {}/{length} dev s0", made.door));
        ip(&format!("-n {proxy} address add 10.97.0.2/24 dev {b}"));
        ip(&format!("-n {outside} address add 10.97.0.1/24 dev o0"));
        ip(&format!("-n {outside} address add {SITE}/32 dev lo"));
        for (name, link) in [(proxy, "s0"), (proxy, b.as_str()), (outside, "o0")] {
            ip(&format!("-n {name} link set {link} up"));
        }
        ip(&format!("-n {proxy} route add default via 10.97.0.1"));
        std::fs::create_dir_all(format!("/etc/netns/{proxy}")).unwrap();
        std::fs::write(format!("/etc/netns/{proxy}/resolv.conf"), "nameserver 10.97.0.1\n").unwrap();
        made
    }

    fn start(&mut self, inside: &str, program: &str, arguments: &[&str]) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", inside, program]).args(arguments).env("TALE_LOG", "warn");
        self.started.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for started in &mut self.started {
            let _ = started.kill();
            let _ = started.wait();
        }
        for name in [&self.proxy, &self.outside] {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
        let _ = std::fs::remove_dir_all(format!("/etc/netns/{}", self.proxy));
    }
}

/// A repository with one page, and a server for SSH on port 443 that has it.
fn serve(networks: &mut Networks, folder: &Path) {
    let at = folder.display().to_string();
    for name in ["host", "user"] {
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", &format!("{at}/{name}")]);
    }
    let repository = format!("{at}/repository");
    run("git", &["init", "-q", "-b", "main", &repository]);
    std::fs::write(format!("{repository}/page"), "through the tunnel\n").unwrap();
    run("git", &["-C", &repository, "add", "page"]);
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
    run("git", &[&["-C", &repository], &identity[..], &["commit", "-q", "-m", "one"]].concat());
    let config = format!(
        "Port 443\nListenAddress {SITE}\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nStrictModes no\n\
         UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
    );
    std::fs::write(format!("{at}/sshd_config"), config).unwrap();
    std::fs::create_dir_all("/run/sshd").unwrap();
    let outside = networks.outside.clone();
    networks.start(&outside, "/usr/sbin/sshd", &["-D", "-f", &format!("{at}/sshd_config")]);
}

/// As the guide for sessions has it: the key goes into an agent from a variable, the host's key stands in a file.
const RECIPE: &str = r#"set -eu
eval "$(ssh-agent -s)" >/dev/null
trap 'kill "$SSH_AGENT_PID"' EXIT
printf '%s\n' "$DEPLOY_KEY" | ssh-add -q -
printf '%s\n' "$KNOWN_HOST" > known
proxy="${HTTP_PROXY#http://}"
export GIT_SSH_COMMAND="ssh -o 'ProxyCommand=nc -X connect -x $proxy %h %p' -o StrictHostKeyChecking=yes \
  -o UserKnownHostsFile=$PWD/known -o GlobalKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectTimeout=20"
for n in 1 2 3 4 5 6 7 8 9 10; do
  git ls-remote --exit-code "$URL" HEAD >/dev/null 2>why && break
  [ "$n" = 10 ] && cat why && exit 1
  grep -q 'Host key verification failed' why && echo REFUSED && exit 2
  sleep 0.3
done
git clone -q "$URL" clone
cat clone/page; id -u; ssh-add -l | wc -l; grep -rls 'PRIVATE KEY' /agent /tmp | wc -l"#;

#[tokio::test]
async fn an_agent_clones_over_ssh_through_the_way_out() {
    let Some(place) = Place::find("git") else { return };
    let named = std::env::var("TALE_BINARY").map_or_else(|_| workspace().join("target/debug/tale"), Into::into);
    let programs = [named.as_path(), Path::new("/usr/sbin/sshd"), Path::new("/usr/sbin/nft")];
    if programs.iter().any(|program| !program.exists()) || !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root, openssh-server, nftables and the program (`cargo build --package tale`)");
        return;
    }
    let mut networks = Networks::new(&place);
    let door = format!("http://{}:3128", networks.door);
    let spawner = place.spawner_with(|config| config.docker.proxy = door.parse().unwrap()).await;
    let folder = place.root.path().join("site");
    std::fs::create_dir(&folder).unwrap();
    serve(&mut networks, &folder);
    let inside = networks.proxy.clone();
    networks.start(&inside, named.to_str().unwrap(), &["serve", "sandbox-egress"]);

    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let url = format!("ssh://root@{SITE}:443{}/repository", folder.display());
    let env = |host_key: &str| json!({"DEPLOY_KEY": read("user"), "KNOWN_HOST": format!("[{SITE}]:443 {host_key}"), "URL": url});
    let caller = &spawner.caller;
    caller.create("s1").await;
    let (result, text) = caller.run_with("s1", RECIPE, env(&read("host.pub"))).await;
    assert_eq!(text, "through the tunnel\n10001\n1\n0\n", "{result:?}");
    // Another host behind the same address, and a command that has no key.
    let (result, text) = caller.run_with("s1", RECIPE, env(&read("user.pub"))).await;
    assert_eq!((result.exit_code, text.as_str()), (Some(2), "REFUSED\n"));
    assert_eq!(caller.run("s1", "echo ${DEPLOY_KEY-none}").await.1, "none\n");
}
