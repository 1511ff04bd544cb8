"""A client of the lab's own APIs, with just what filling it needs."""
import time

import requests

from . import LabError


class Cloud:

    def __init__(self, settings, user='admin', project='admin'):
        self.s = settings
        self.session = requests.Session()
        self.session.trust_env = False
        self.project = self.login(user, project)

    def login(self, user, project):
        """Takes a token, and returns the project's id. Tried for half a minute: Keystone has to find its database."""
        domain = {'id': 'default'}
        body = {'auth': {
            'identity': {'methods': ['password'], 'password': {
                'user': {'name': user, 'domain': domain, 'password': self.s.password}}},
            'scope': {'project': {'name': project, 'domain': domain}}}}
        until = time.monotonic() + 30
        while True:
            try:
                answer = self.session.post(self.s.auth_url + '/auth/tokens', json=body, timeout=60)
                if answer.status_code == 201:
                    self.session.headers['X-Auth-Token'] = answer.headers['X-Subject-Token']
                    return answer.json()['token']['project']['id']
                problem = '%d %s' % (answer.status_code, answer.text[:300])
            except requests.RequestException as e:
                problem = str(e)
            if time.monotonic() > until:
                raise LabError('%s cannot log in at %s: %s' % (user, self.s.auth_url, problem))
            time.sleep(0.3)

    def call(self, method, url, timeout=120, **kwargs):
        try:
            answer = self.session.request(method, url, timeout=timeout, **kwargs)
        except requests.RequestException as e:
            raise LabError('%s %s: %s' % (method, url, e))
        if not answer.ok:
            raise LabError('%s %s: %d %s' % (method, url, answer.status_code, answer.text[:500]))
        return answer.json() if 'json' in answer.headers.get('Content-Type', '') and answer.text else {}

    def get(self, url, timeout=120, **params):
        return self.call('GET', url, timeout, params=params)

    def ensure(self, url, kind, find, more=None):
        """The one that `find` (a dict of query parameters that are also its attributes) names, made where there is none."""
        plural = url.rpartition('/')[2]
        for found in self.get(url, **find)[plural]:
            return found
        return self.call('POST', url, json={kind: {**find, **(more or {})}})[kind]
