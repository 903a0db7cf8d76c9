//! A repository over SSH through CONNECT, as the guide for sessions has it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::world::{SITE, World};

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server for SSH on port 443 outside.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn keys(folder: &Path) {
    for name in ["host", "user"] {
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(folder.join(name)));
    }
    std::fs::copy(folder.join("user.pub"), folder.join("authorized_keys")).unwrap();
    let host = std::fs::read_to_string(folder.join("host.pub")).unwrap();
    std::fs::write(folder.join("known_hosts"), format!("[{SITE}]:443 {host}[git.example]:443 {host}")).unwrap();
}

#[test]
fn a_repository_is_cloned_over_ssh_through_the_proxy() {
    let Some(world) = World::new() else { return };
    let programs = ["/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/nc", "/usr/bin/ssh-agent"];
    if programs.iter().any(|program| !Path::new(program).exists()) {
        eprintln!("skipped: needs openssh-server, openssh-client and netcat-openbsd");
        return;
    }
    let folder = world.folder.path();
    keys(folder);
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let repository = folder.join("repository");
    let git = |arguments: &[&str], at: &Path| {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        run(Command::new("git").args(identity).args(arguments).current_dir(at))
    };
    std::fs::create_dir(&repository).unwrap();
    git(&["init", "-q", "-b", "main"], &repository);
    std::fs::write(repository.join("page"), "through the tunnel\n").unwrap();
    git(&["add", "page"], &repository);
    git(&["commit", "-q", "-m", "one"], &repository);

    let config = format!(
        "Port 443\nListenAddress {SITE}\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized_keys\nStrictModes no\n\
         UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n",
        folder.display()
    );
    std::fs::write(folder.join("sshd_config"), config).unwrap();
    std::fs::create_dir_all("/run/sshd").unwrap();
    let mut sshd = world.outside.command("/usr/sbin/sshd");
    sshd.args(["-D", "-f"]).arg(folder.join("sshd_config")).stderr(Stdio::null());
    let _sshd = Sshd(sshd.spawn().unwrap());
    world.resolver.set("git.example", &[SITE]);
    let _proxy = world.start(|_| {});

    // The recipe: the proxy of the environment, an agent that holds the key, a file with the host's key.
    let recipe = format!(
        r#"set -eu
eval "$(ssh-agent -s)" >/dev/null
trap 'kill "$SSH_AGENT_PID"' EXIT
ssh-add -q - <"{0}/user"
proxy="${{HTTP_PROXY#http://}}"
export GIT_SSH_COMMAND="ssh -o 'ProxyCommand=nc -X connect -x $proxy %h %p' -o StrictHostKeyChecking=yes \
  -o UserKnownHostsFile={0}/known_hosts -o GlobalKnownHostsFile=/dev/null -o BatchMode=yes -o ConnectTimeout=20"
url="ssh://root@git.example:443{1}"
for n in 1 2 3 4 5 6 7 8 9 10; do
  git ls-remote --exit-code "$url" HEAD >/dev/null 2>"{0}/why" && break
  [ "$n" = 10 ] && cat "{0}/why" >&2 && exit 1
  sleep 0.3
done
git clone -q "$url" "{0}/clone"
"#,
        folder.display(),
        repository.display()
    );
    let mut shell = world.session.command("bash");
    shell.args(["-c", &recipe]).env("HTTP_PROXY", "http://10.88.0.2:3128");
    run(&mut shell);
    assert_eq!(std::fs::read_to_string(folder.join("clone/page")).unwrap(), "through the tunnel\n");
}
