"""What others read: the file `env` for shells and test suites, clouds.yaml for OpenStack's own client."""
import json
import shlex

from . import packages
from .seed import PROJECT, USERS


def write(settings, services):
    """Both files, below the lab's folder. Returns the path of `env`."""
    pid = services.registry.pid
    heat = [pid(name) for name in ('heat-engine', 'heat-api', 'heat-api-cfn')]
    env = {
        'AUTH_URL': settings.auth_url,
        'REGION': settings.region,
        'REGIONS': ' '.join(settings.regions),
        'USERNAME': USERS[0][0], 'PASSWORD': settings.password, 'PROJECT': PROJECT,
        'MEMBER_USERNAME': USERS[1][0], 'MEMBER_PASSWORD': settings.password,
        'ADMIN_USERNAME': 'admin', 'ADMIN_PASSWORD': settings.password, 'ADMIN_PROJECT': 'admin',
        'DOMAIN': 'Default',
        'HOSTS': ' '.join(host for host, _ in settings.computes),
        'HEAT_ENGINE_PID': heat[0],
        'HEAT_PIDS': ' '.join(map(str, heat)),
        'VERSIONS': ' '.join('%s %s' % item for item in packages.upstream().items()),
    }
    path = settings.dir / 'env'
    path.write_text(''.join('export VNFM_OPENSTACK_%s=%s\n' % (k, shlex.quote(str(v))) for k, v in env.items()))
    # JSON is YAML
    (settings.dir / 'clouds.yaml').write_text(json.dumps({'clouds': {
        'lab-' + user: {
            'identity_api_version': 3, 'regions': list(settings.regions),
            'auth': {'auth_url': settings.auth_url, 'username': user, 'password': settings.password, 'project_name': project,
                     'user_domain_name': 'Default', 'project_domain_name': 'Default'}}
        for user, project in (('admin', 'admin'), *((u, PROJECT) for u, _ in USERS))}}, indent=1) + '\n')
    return path
